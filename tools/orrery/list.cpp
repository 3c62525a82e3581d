// SPDX-License-Identifier: Apache-2.0
// `orrery list`: an ordered list, or a walking list, of a named world from the shell.
#include "attach.hpp"
#include "commands.hpp"
#include "text.hpp"

#include <orrery/orrery.hpp>
#include <orrery/process/detail/silent_pe.hpp>
#include <orrery/service/ordered_list.hpp>
#include <orrery/service/walking_list.hpp>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <boost/tokenizer.hpp>

namespace orrery::tool {
namespace {

std::string shortened(const std::string& text) {
  constexpr std::size_t most = 60;
  return text.size() <= most ? text : text.substr(0, most) + "...";
}

template <class T>
T value_of(const std::string& text) {
  if constexpr (std::is_same_v<T, std::string>) {
    return text;
  } else {
    T n{};
    const char* const end = text.data() + text.size();
    if (const auto r = std::from_chars(text.data(), end, n); r.ec != std::errc() || r.ptr != end)
      throw usage_error(errc::bad_argument, fmt::format("'{}' is no number of this list's type", shortened(text)));
    return n;
  }
}

/// A key or value of the command line.
template <class T>
T word_as(const std::string& text) {
  try {
    return value_of<T>(text);
  } catch (const usage_error& e) {
    throw command_error(e.what());
  }
}

// What cannot be meant, as a part of it would be lost: null if all is well. Other programs double a quote in quotes, and let texts
// have several lines.
const char* wrong_quotes(const std::string& line) {
  bool begins = true;  // a field
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\\') {
      ++i;
    } else if (line[i] == '"' && !begins) {
      return "a quote in the middle of a field: the whole field stands in quotes, and \\\" is a quote in it";
    } else if (line[i] == '"') {
      for (++i; i < line.size() && line[i] != '"'; ++i)
        if (line[i] == '\\') ++i;
      if (i >= line.size()) return "a quote has no end on its line; \\n is a line end in a text in quotes";
      if (i + 1 < line.size() && line[i + 1] == '"') return "a quote in quotes is written \\\" here, not \"\"";
      if (i + 1 < line.size() && line[i + 1] != ',') return "a text behind the quotes of a field";
    }
    begins = i < line.size() && line[i] == ',';
  }
  return nullptr;
}

// A line of a CSV file: a key and a value. Texts with commas, quotes or line ends are in quotes, in which a backslash stands before a
// quote or a backslash, and \n is a line end. A carriage return is one of them: at the end of a line it is no part of a text.
std::vector<std::string> fields_of(const std::string& line) {
  if (const char* const why = wrong_quotes(line); why != nullptr) throw usage_error(errc::bad_argument, why);
  const boost::tokenizer<boost::escaped_list_separator<char>> fields(line);
  return {fields.begin(), fields.end()};
}
template <class T>
std::string field(const T& x) {
  std::string text = fmt::format("{}", x);
  if (text.find_first_of(",\"\\\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return quoted + '"';
}

// The beginning of a file that other programs have written: without the mark of UTF-8.
void begin_file(std::string& line) {
  if (line.starts_with("\xff\xfe") || line.starts_with("\xfe\xff"))
    throw usage_error(errc::bad_argument, "the file is UTF-16; save it as UTF-8");
  if (line.starts_with("\xef\xbb\xbf")) line.erase(0, 3);
}

// Inserts the lines `key,value` of the file, many at a time; keys that are there get other values.
template <class Key, class Value>
int load(list_session<Key, Value>& s, const std::string& name) {
  const auto fail_to_read = [&](int why) {
    throw usage_error(errc::bad_argument, fmt::format("{} cannot be read: {}", name, std::strerror(why)));
  };
  std::ifstream opened;
  if (name != "-") opened.open(name);
  std::istream& file = name == "-" ? std::cin : opened;
  if (!file) fail_to_read(errno);
  std::uint64_t inserted = 0;
  std::uint64_t loaded = 0;
  std::uint64_t lines = 0;
  const auto count = [&](const auto& reply) {
    reply.check();
    inserted += reply.done ? 1 : 0;
  };
  const auto refuse = [&](const char* why) {
    throw usage_error(errc::bad_argument,
                      fmt::format("{}:{}: {}; what stands in the lines before it is in the list", name, lines, why));
  };
  for (std::string line; std::getline(file, line);) {
    try {
      if (lines++ == 0) begin_file(line);
      if (line.ends_with('\r')) line.pop_back();
      if (line.empty()) continue;
      const auto fields = fields_of(line);
      if (fields.size() != 2)
        throw usage_error(errc::bad_argument, fmt::format("{} field{}, where a key and a value must be", fields.size(),
                                                          fields.size() == 1 ? "" : "s"));
      s.start_insert_or_update(value_of<Key>(fields[0]), value_of<Value>(fields[1]));
      ++loaded;
    } catch (const boost::escaped_list_error& e) {
      refuse(e.what());
    } catch (const usage_error& e) {
      refuse(e.what());
    }
    while (const auto reply = s.try_receive()) count(*reply);
  }
  if (file.bad()) fail_to_read(errno);
  while (const auto reply = s.receive()) count(*reply);
  fmt::print("{} inserted, {} updated\n", inserted, loaded - inserted);
  return 0;
}

int print_statistics(const std::vector<service::range_report>& all) {
  fmt::print("{:>6} {:>4} {:>12} {:>14} {:>10} {:>8} {:>8} {:>10} {:>14} {:>8} {:>8} {:>10}\n", "range", "pe", "items",
             "requests", "moved", "splits", "merges", "busy_ms", "bytes", "streams", "window", "limit");
  for (std::size_t i = 0; i < all.size(); ++i)
    fmt::print("{:>6} {:>4} {:>12} {:>14} {:>10} {:>8} {:>8} {:>10} {:>14} {:>8} {:>8} {:>10}\n", i, all[i].pe,
               all[i].items, all[i].requests, all[i].moved, all[i].splits, all[i].merges, all[i].busy_ns / 1'000'000,
               all[i].bytes, all[i].streams, all[i].window, all[i].limit);
  return 0;
}

int print_statistics(const std::vector<service::walk_report>& all) {
  fmt::print("{:>4} {:>10} {:>10} {:>12} {:>14} {:>10} {:>10} {:>10} {:>10} {:>8} {:>8} {:>8}\n", "pe", "processes",
             "free", "items", "requests", "jumps", "stale", "refused", "shortcuts", "window", "items_of", "forwards");
  for (const service::walk_report& r : all)
    fmt::print("{:>4} {:>10} {:>10} {:>12} {:>14} {:>10} {:>10} {:>10} {:>10} {:>8} {:>8} {:>8}\n", r.pe, r.processes,
               r.free, r.items, r.requests, r.jumps, r.stale, r.refused, r.shortcuts, r.window, r.granularity,
               r.forwards);
  return 0;
}

template <class Key, class Value>
int act(list_session<Key, Value>& s, const list_request& r) {
  const auto key = [&] { return word_as<Key>(r.arguments[0]); };
  if (r.action == "find") {
    const auto v = s.find(key());
    if (v) fmt::print("{}\n", for_stdout(fmt::format("{}", *v)));
    return v ? 0 : 1;
  }
  if (r.action == "insert") return s.insert(key(), word_as<Value>(r.arguments[1])) ? 0 : 1;
  if (r.action == "erase") return s.erase(key()) ? 0 : 1;
  if (r.action == "size") {
    fmt::print("{}\n", s.size());
    return 0;
  }
  if (r.action == "load") return load(s, r.arguments[0]);
  std::optional<Key> bounds[2];  // range [FROM [TO]]
  for (std::size_t i = 0; i < std::min<std::size_t>(r.arguments.size(), 2); ++i)
    bounds[i] = word_as<Key>(r.arguments[i]);
  auto walk = s.scan(bounds[0], bounds[1]);
  for (auto part = walk.next(); !part.empty(); part = walk.next())
    for (const auto& [k, v] : part) fmt::print("{},{}\n", for_stdout(field(k)), for_stdout(field(v)));
  return 0;
}

// The exit code if the list is one of this kind with these types.
template <class List>
std::optional<int> act_on(const list_request& r) {
  const auto list = List::lookup(r.name);
  if (!list.has_these_types()) return {};
  if (r.action == "statistics") {
    const int code = print_statistics(list.statistics());
    if constexpr (requires { list.lost(); })
      for (const auto& keys : list.lost())
        fmt::print("lost with a node: keys {}{}\n",
                   keys.from ? fmt::format("from {} ", for_stdout(field(*keys.from))) : "",
                   keys.to ? fmt::format("to before {}", for_stdout(field(*keys.to))) : "to the last");
    return code;
  }
  auto s = list.open();
  return act(s, r);
}
template <class Key, class Value>
std::optional<int> act_on_either(const list_request& r) {
  const auto code = act_on<ordered_list<Key, Value>>(r);
  return code ? code : act_on<walking_list<Key, Value>>(r);
}
template <class Key>
std::optional<int> with_keys(const list_request& r) {
  if (const auto code = act_on_either<Key, std::string>(r)) return code;
  if (const auto code = act_on_either<Key, std::int32_t>(r)) return code;
  return act_on_either<Key, std::int64_t>(r);
}

// What is wrong with the number of arguments; empty if nothing is. More than the action has would be meant for something.
std::string wrong_arguments(const list_request& r) {
  const std::size_t most = r.action == "insert" || r.action == "range"      ? 2
                           : r.action == "size" || r.action == "statistics" ? 0
                                                                            : 1;
  const std::size_t least = r.action == "range" ? 0 : most;
  if (r.arguments.size() > most)
    return fmt::format("'{}' has {} argument{} at most, not {}", r.action, most, most == 1 ? "" : "s",
                       r.arguments.size());
  if (r.arguments.size() < least)
    return fmt::format("'{}' needs {}", r.action,
                       r.action == "load"     ? "a file, or - for the standard input"
                       : !r.arguments.empty() ? "a value"
                       : r.action == "insert" ? "a key and a value"
                                              : "a key");
  return {};
}

// The result, if it comes before `deadline`. Nobody has to be told of it later.
template <class T>
std::optional<T> take_before(std::chrono::nanoseconds deadline, future<T> answer) {
  if (answer.wait_for(deadline - now())) return answer.get();
  detail::future_access<T>::disregard(std::move(answer));
  return {};
}

int use(const list_request& r) {
  if (const auto code = with_keys<std::string>(r)) return *code;
  if (const auto code = with_keys<std::int32_t>(r)) return *code;
  if (const auto code = with_keys<std::int64_t>(r)) return *code;
  throw usage_error(errc::bad_argument,
                    fmt::format("{}: keys and values must be of 32 or 64 bits (int, long) or std::string", r.name));
}

// A call to a process that does not answer parks for ever: the one that waits for it is another process, which ends with the program.
future<int> start_use(const list_request& r) {
  promise<int> result;
  auto answer = result.get_future();
  spawn_here([result = std::move(result), r]() mutable {
    try {
      result.set_value(use(r));
    } catch (...) {
      result.set_exception(std::current_exception());
    }
  });
  return answer;
}

// Throws timeout_error if the list is not found, does not answer, or has not done what is asked in time, as where a program is stopped.
// What load and range take depends on how much there is: of these only the first answer must come in time.
int use_in_time(const list_request& r) {
  const auto limit = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(r.timeout));
  const auto deadline = now() + limit;
  const auto root = lookup<service::service_root>(r.name, limit);
  const scheduler::node& n = detail::here_pe().owner();
  const std::string pe = detail::pe_in_words(n, root.address().pe);
  if (!take_before(deadline, start(root)->is_of("", "")))
    throw timeout_error(verbatim, fmt::format("{}: {} has the root of this service and {} (--timeout={})", r.name, pe,
                                              detail::why_silent(n, root.address().pe), r.timeout));
  if (r.action == "load" || r.action == "range") return use(r);
  if (const auto code = take_before(deadline, start_use(r))) return *code;
  throw timeout_error(
      verbatim,
      fmt::format(
          "{}: a part of this service has not answered; is a node stopped ('orrery ls "
          "{}'), or does a method compute for long ('orrery top {}')? (--timeout={}){}",
          r.name, r.world, r.world, r.timeout,
          r.action == "insert" || r.action == "erase" ? fmt::format("; '{}' may be done later", r.action) : ""));
}

}  // namespace

int list(const common& c, const list_request& r) {
  constexpr int failed = 3;  // 1 is: there was nothing to find, insert or erase
  if (const std::string why = wrong_arguments(r); !why.empty()) {
    (void)fail("orrery list: " + why);
    return command_error::exit_code;
  }
  if (const auto world = attach(r.world, c.directory); !world) {  // run() would make one
    (void)fail(world.error());
    return failed;
  }
  std::vector<std::string> options{"orrery", "--orrery-world=" + r.world, "--orrery-pes=1"};
  if (!c.directory.empty()) options.push_back("--orrery-shm-dir=" + c.directory);
  std::vector<char*> words;
  for (std::string& o : options) words.push_back(o.data());
  words.push_back(nullptr);
  int code = failed;  // of a program that does not come to its main, too
  const int ended = run(static_cast<int>(options.size()), words.data(), [&](const args&) {
    try {
      const int found = use_in_time(r);
      if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
        (void)fail(fmt::format("the output cannot be written: {}", std::strerror(errno)));
      else
        code = found;
    } catch (const command_error& e) {
      (void)fail(e.what());
      code = command_error::exit_code;
    } catch (const std::exception& e) {
      (void)fail(e.what());
    }
    return code;
  });
  return ended == code ? code : failed;
}

}  // namespace orrery::tool
