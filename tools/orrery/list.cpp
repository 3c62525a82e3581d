// SPDX-License-Identifier: Apache-2.0
// `orrery list`: an ordered list of a named world from the shell.
#include "attach.hpp"
#include "commands.hpp"

#include <orrery/orrery.hpp>
#include <orrery/service/ordered_list.hpp>

#include <charconv>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace orrery::tool {
namespace {

template <class T>
T value_of(const std::string& text) {
  if constexpr (std::is_same_v<T, std::string>) {
    return text;
  } else {
    T n{};
    const char* const end = text.data() + text.size();
    if (const auto r = std::from_chars(text.data(), end, n); r.ec != std::errc() || r.ptr != end)
      throw usage_error(errc::bad_argument, fmt::format("'{}' is no number of this list's type", text));
    return n;
  }
}

const std::string& argument(const list_request& r, std::size_t i, const char* what) {
  if (i >= r.arguments.size())
    throw usage_error(errc::bad_argument, fmt::format("orrery list: '{}' needs {}", r.action, what));
  return r.arguments[i];
}

template <class Key, class Value>
int act(list_session<Key, Value>& s, const list_request& r) {
  const auto key = [&] { return value_of<Key>(argument(r, 0, "a key")); };
  if (r.action == "find") {
    const auto v = s.find(key());
    if (v) fmt::print("{}\n", *v);
    return v ? 0 : 1;
  }
  if (r.action == "insert") return s.insert(key(), value_of<Value>(argument(r, 1, "a value"))) ? 0 : 1;
  if (r.action == "erase") return s.erase(key()) ? 0 : 1;
  if (r.action == "size") {
    fmt::print("{}\n", s.size());
    return 0;
  }
  std::optional<Key> bounds[2];  // range [FROM [TO]]
  for (std::size_t i = 0; i < std::min<std::size_t>(r.arguments.size(), 2); ++i)
    bounds[i] = value_of<Key>(r.arguments[i]);
  auto walk = s.scan(bounds[0], bounds[1]);
  for (auto part = walk.next(); !part.empty(); part = walk.next())
    for (const auto& [k, v] : part) fmt::print("{},{}\n", k, v);
  return 0;
}

// The exit code if the list has these types.
template <class Key, class Value>
std::optional<int> act_on(const list_request& r) {
  const auto list = ordered_list<Key, Value>::lookup(r.name);
  if (!list.has_these_types()) return {};
  auto s = list.open();
  return act(s, r);
}
template <class Key>
std::optional<int> with_keys(const list_request& r) {
  if (const auto code = act_on<Key, std::string>(r)) return code;
  if (const auto code = act_on<Key, std::int32_t>(r)) return code;
  return act_on<Key, std::int64_t>(r);
}

int use(const list_request& r) {
  if (const auto code = with_keys<std::string>(r)) return *code;
  if (const auto code = with_keys<std::int32_t>(r)) return *code;
  if (const auto code = with_keys<std::int64_t>(r)) return *code;
  throw usage_error(errc::bad_argument,
                    fmt::format("{}: keys and values must be of 32 or 64 bits (int, long) or std::string", r.name));
}

}  // namespace

int list(const common& c, const list_request& r) {
  std::vector<std::string> options{"orrery", "--orrery-world=" + r.world, "--orrery-pes=1"};
  if (!c.directory.empty()) options.push_back("--orrery-shm-dir=" + c.directory);
  std::vector<char*> words;
  for (std::string& o : options) words.push_back(o.data());
  words.push_back(nullptr);
  return run(static_cast<int>(options.size()), words.data(), [&](const args&) {
    try {
      return use(r);
    } catch (const error& e) {
      return fail(e.what());
    }
  });
}

}  // namespace orrery::tool
