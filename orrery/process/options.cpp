// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/internal/units.hpp>
#include <orrery/process/nearest.hpp>
#include <orrery/process/options.hpp>
#include <orrery/process/simulation.hpp>
#include <orrery/transport/shm/rendezvous.hpp>
#include <orrery/transport/shm/world.hpp>
#include <orrery/wire/error.hpp>

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <map>
#include <ranges>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

namespace orrery {
namespace {

constexpr std::uint64_t kib = 1024;
constexpr std::uint64_t mib = kib * 1024;
constexpr std::uint64_t gib = mib * 1024;
constexpr std::uint64_t tib = gib * 1024;
constexpr std::uint64_t microsecond = 1000;
constexpr std::uint64_t second = 1'000'000'000;

constexpr std::string_view prefix = "--orrery-";
constexpr std::string_view variable_prefix = "ORRERY_";

// The table.
constexpr option_info table[] = {
    {.name = "pes",
     .value = &options::pes,
     .meaning = "PEs of each node",
     .automatic = "as many as there are cores for it",
     .least = 1,
     .most = transport::max_pes},
    {.name = "nodes",
     .value = &options::nodes,
     .meaning = "OS processes of this program, which starts the others itself",
     .least = 1,
     .most = transport::max_nodes},
    {.name = "world",
     .value = &options::world,
     .meaning = "name of the world to join, or to create if it does not run yet; under MPI, for orrery top",
     .automatic = "a world without a name"},
    {.name = "sim",
     .value = &options::sim,
     .meaning = "run in a simulated world and in virtual time, on one OS thread; for instance "
                "machines=512,pes=8,net=200g,seed=7",
     .automatic = "no simulation"},
    {.name = "mpi",
     .value = &options::mpi,
     .meaning =
         "auto makes the ranks that mpirun has started one world; off makes each a world of its own; or the file of "
         "the MPI library"},
    {.name = "role",
     .value = &options::role,
     .meaning = "what a node that runs no main runs beside serving: a rank of an MPI launch that is not the first, or "
                "another node of --orrery-nodes",
     .automatic = "nothing"},
    {.name = "machine-ranks",
     .value = &options::machine_ranks,
     .meaning = "for tests of what crosses machines: so many ranks are taken for one machine",
     .automatic = "the ranks of one host",
     .least = 1,
     .most = transport::max_nodes},
    {.name = "machine-jitter",
     .value = &options::machine_jitter,
     .meaning = "for tests of what crosses machines: what comes from other ranks is late by a random time, up to this",
     .most = second},
    {.name = "piece",
     .value = &options::piece,
     .meaning =
         "the parts in which large arguments travel between machines; other messages wait for two of them at most",
     .least = 4096,
     .most = transport::cluster_map::largest_piece},
    {.name = "node-timeout",
     .value = &options::node_timeout,
     .meaning = "how long a node of another machine may be silent before it is taken for lost",
     .least = 1000 * microsecond,
     .most = 24 * 3600 * second},
    {.name = "waiting",
     .value = &options::waiting,
     .meaning = "what a PE with nothing to do does: wait spins, notify spins for a while and then sleeps, "
                "immediate sleeps at once"},
    {.name = "spin",
     .value = &options::spin,
     .meaning = "how long a PE spins before it sleeps, with --orrery-waiting=notify; eight times as long "
                "where there are other machines; more PEs than cores never spin",
     .most = 3600 * second},
    {.name = "pin", .value = &options::pin, .meaning = "bind each PE to a core if there are enough cores"},
    {.name = "method-stack",
     .value = &options::method_stack,
     .meaning = "stack of a method; only pages that are touched cost memory",
     .least = 16 * kib,
     .most = gib},
    {.name = "function-stack",
     .value = &options::function_stack,
     .meaning = "stack of a process function",
     .least = 16 * kib,
     .most = gib},
    {.name = "mailbox",
     .value = &options::mailbox,
     .meaning = "bytes of messages that may wait at one process before its senders do",
     .least = 4 * kib,
     .most = 2 * gib},
    {.name = "queue-memory",
     .value = &options::queue_memory,
     .meaning =
         "bytes of messages that may wait at all processes of a node together; a node with more ends with a report",
     .automatic = "half of the machine's memory for its nodes",
     .least = mib,
     .most = 64 * tib},
    {.name = "ring",
     .value = &options::ring,
     .meaning = "bytes of messages on their way from one PE to another, a power of two",
     .least = 32 * kib,
     .most = gib},
    {.name = "memory",
     .value = &options::memory,
     .meaning =
         "shared memory of each node for payloads on their way to other nodes, beside its rings; who has waited 50 ms for some goes beyond it",
     .automatic = "a share of the machine's memory",
     .least = mib,
     .most = 64 * tib},
    {.name = "shm-dir",
     .value = &options::shm_dir,
     .meaning = "directory in which named worlds are found",
     .automatic = "/dev/shm"},
    {.name = "startup-timeout",
     .value = &options::startup_timeout,
     .meaning = "how long the nodes of a world may take to start",
     .least = 1000 * microsecond,
     .most = 24 * 3600 * second},
    {.name = "stuck",
     .value = &options::stuck,
     .meaning = "how long a method may wait without using the processor, and let nothing else run on its PE, before "
                "stderr says so; 0 is for ever",
     .most = 24 * 3600 * second},
    {.name = "failed-exit",
     .value = &options::failed_exit,
     .meaning = "exit code of a program whose main function returned 0, but whose one-way messages failed",
     .most = 255},
    {.name = "serialize",
     .value = &options::serialize,
     .meaning =
         "write and read arguments, results and elements that move also inside a node, to find mistakes that only "
         "several nodes would show; slow"},
    {.name = "trace",
     .value = &options::trace,
     .meaning = "file for a trace of all methods, to be opened with https://ui.perfetto.dev",
     .automatic = "no trace"},
    {.name = "trace-memory",
     .value = &options::trace_memory,
     .meaning = "memory of each PE for its trace; what happens later is not traced",
     .least = 64 * kib,
     .most = 64 * gib},
    {.name = "check-sharing",
     .value = &options::check_sharing,
     .meaning = "follow what happens before what, and tell of accesses to shared data that nothing orders; slow"},
    {.name = "advise",
     .value = &options::advise,
     .meaning = "count accesses to shared data, and tell which behaviours would be faster; slow"},
    {.name = "advise-net",
     .value = &options::advise_net,
     .meaning =
         "the network that the advice is for: 10g, 200g or L:o:g:B as in --orrery-sim; a simulation has its own"},
    {.name = "quiet", .value = &options::quiet, .meaning = "say nothing on stderr but errors"},
    {.name = "help", .value = &options::help, .meaning = "print this list and exit", .command_line_only = true},
};

template <class... F>
struct overloaded : F... {
  using F::operator()...;
};

constexpr std::string_view waiting_names[] = {"wait", "notify", "immediate"};  // by number

struct unit {
  std::string_view name;
  std::uint64_t factor;
};
constexpr unit size_units[] = {{"T", tib}, {"G", gib}, {"M", mib}, {"K", kib}};
constexpr unit time_units[] = {{"s", second}, {"ms", 1000 * microsecond}, {"us", microsecond}, {"ns", 1}};

// In the largest unit that leaves no fraction.
std::string with_unit(std::uint64_t n, std::span<const unit> units) {
  for (const unit& u : units)
    if (n != 0 && n % u.factor == 0) return fmt::format("{}{}", n / u.factor, u.name);
  return std::to_string(n);
}
std::string size_text(std::uint64_t n) { return with_unit(n, size_units); }
std::string time_text(std::uint64_t ns) { return with_unit(ns, time_units); }

std::optional<std::uint64_t> to_number(std::string_view text) {
  std::uint64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return n;
}

// Numbers with a unit as CLI11 reads them. It takes a sign or a unit alone, too.
std::optional<std::uint64_t> converted(const CLI::Validator& convert, std::string text) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text.front())) == 0) return std::nullopt;
  try {
    if (!convert(text).empty()) return std::nullopt;
  } catch (const CLI::ValidationError&) {
    return std::nullopt;
  }
  return to_number(text);
}

}  // namespace

namespace detail {

std::optional<std::uint64_t> to_size(const std::string& text) { return converted(CLI::AsSizeValue(false), text); }

std::optional<std::uint64_t> to_time(const std::string& text) {
  static const std::map<std::string, std::uint64_t> units{
      {"ns", 1}, {"us", microsecond}, {"ms", 1000 * microsecond}, {"s", second}, {"min", 60 * second}};
  if (text == "0") return 0;
  return converted(CLI::AsNumberWithUnit(units, CLI::AsNumberWithUnit::UNIT_REQUIRED), text);
}

}  // namespace detail

namespace {

using detail::to_size;
using detail::to_time;

std::optional<bool> to_bool(std::string_view text) {
  constexpr std::string_view yes[] = {"yes", "true", "on", "1"};
  constexpr std::string_view no[] = {"no", "false", "off", "0"};
  if (std::ranges::find(yes, text) != std::end(yes)) return true;
  if (std::ranges::find(no, text) != std::end(no)) return false;
  return std::nullopt;
}

// The allowed values, as a clause that follows "allowed is".
std::string allowed(const option_info& info) {
  const std::string orauto = info.automatic.empty() ? "" : ", or auto";
  return std::visit(overloaded{
                        [](bool options::*) { return std::string("yes or no"); },
                        [&](std::uint32_t options::*) {
                          return fmt::format("a number from {} to {}{}", info.least, info.most, orauto);
                        },
                        [&](std::uint64_t options::*) {
                          return fmt::format("a size from {} to {}, written like 64K, 1M or 2G{}",
                                             size_text(info.least), size_text(info.most), orauto);
                        },
                        [&](std::chrono::nanoseconds options::*) {
                          return fmt::format("a time from {} to {}, written like 50us, 1ms or 2s{}",
                                             time_text(info.least), time_text(info.most), orauto);
                        },
                        [&](std::string options::*) {
                          if (info.value == option_info::member(&options::sim))
                            return std::string("a list like machines=512,pes=8,net=200g,seed=7");
                          if (info.value == option_info::member(&options::mpi))
                            return std::string("auto, off or the path of a library");
                          return std::string(info.value == option_info::member(&options::world)
                                                 ? "1 to 48 letters, digits, '.', '_' and '-'"
                                                 : "a path");
                        },
                        [](waiting options::*) { return fmt::format("{}", fmt::join(waiting_names, ", ")); },
                    },
                    info.value);
}

[[noreturn]] void fail(const std::string& text) { throw world_error(errc::world_bad_setting, verbatim, text); }

// `where` is the option or the variable, as the user wrote it.
[[noreturn]] void fail_value(const option_info& info, std::string_view where, std::string_view text) {
  fail(fmt::format("{}={}: this value cannot be; allowed is {}", where, text, allowed(info)));
}

void set(options& o, const option_info& info, std::string_view where, const std::string& text) {
  const auto number = [&](std::optional<std::uint64_t> n) {
    if (!info.automatic.empty() && text == "auto") return std::uint64_t{0};
    if (!n || *n < info.least || *n > info.most) fail_value(info, where, text);
    return *n;
  };
  std::visit(overloaded{
                 [&](bool options::* m) {
                   const auto b = to_bool(text);
                   if (!b) fail_value(info, where, text);
                   o.*m = *b;
                 },
                 [&](std::uint32_t options::* m) { o.*m = static_cast<std::uint32_t>(number(to_number(text))); },
                 [&](std::uint64_t options::* m) { o.*m = number(to_size(text)); },
                 [&](std::chrono::nanoseconds options::* m) { o.*m = std::chrono::nanoseconds(number(to_time(text))); },
                 [&](std::string options::* m) {
                   if (m == &options::world && !transport::check_world_name(text)) fail_value(info, where, text);
                   o.*m = text;
                 },
                 [&](waiting options::* m) {
                   const auto* const at = std::ranges::find(waiting_names, text);
                   if (at == std::end(waiting_names)) fail_value(info, where, text);
                   o.*m = static_cast<waiting>(at - waiting_names);
                 },
             },
             info.value);
  if (info.value == option_info::member(&options::ring) && !std::has_single_bit(o.ring))
    fail(fmt::format("{}={}: this is no power of two; take {} or {}", where, text, size_text(std::bit_floor(o.ring)),
                     size_text(std::bit_ceil(o.ring))));
}

// The option that was most likely meant by a name without its prefix; null if none is like it.
const option_info* nearest(std::string_view name) {
  detail::suggestions like(name);
  for (const option_info& info : table) like.consider(info.name);
  if (like.best().empty()) return nullptr;
  return std::ranges::find(table, like.best().front().name, &option_info::name);
}

[[noreturn]] void fail_no_value(const option_info& info) {
  fail(fmt::format("{0} has no value: write {0}={1}; allowed is {2}", info.flag(), info.placeholder(), allowed(info)));
}

bool is_flag(const option_info& info) { return std::holds_alternative<bool options::*>(info.value); }

// CLI11 would take the next argument as the value of `--x=`, and any option as that of `--x`.
void check_values_are_there(std::span<const std::string> arguments) {
  for (std::size_t i = 0; i < arguments.size() && arguments[i] != "--"; ++i) {
    for (const option_info& info : table) {
      const std::string flag = info.flag();
      if (arguments[i] == flag + '=') fail_no_value(info);
      if (arguments[i] != flag || is_flag(info)) continue;
      if (i + 1 == arguments.size() || arguments[i + 1].starts_with("--")) fail_no_value(info);
    }
  }
}

void check_nothing_unknown(std::span<const std::string> rest) {
  for (const std::string& argument : rest) {
    if (argument == "--") return;
    if (!argument.starts_with(prefix)) continue;
    const std::string name = argument.substr(0, argument.find('='));
    const option_info* const meant = nearest(name.substr(prefix.size()));
    fail(fmt::format("there is no option {}; --orrery-help lists those that there are{}", name,
                     meant ? fmt::format("; did you mean {}?", meant->flag()) : ""));
  }
}

void take_environment(started_with& s, const environment& lookup, std::span<const std::string> variables) {
  for (const option_info& info : table) {
    if (info.command_line_only) continue;
    const std::string variable = info.variable();
    if (const auto value = lookup(variable); value && !value->empty()) set(s.values, info, variable, *value);
  }
  for (const std::string& v : variables) {
    if (!v.starts_with(variable_prefix) || v.starts_with("ORRERY_INTERNAL_")) continue;
    if (std::ranges::find(table, v, &option_info::variable) != std::end(table)) continue;
    std::string name = v.substr(variable_prefix.size());
    std::ranges::transform(name, name.begin(),
                           [](unsigned char c) { return c == '_' ? '-' : static_cast<char>(std::tolower(c)); });
    const option_info* const meant = nearest(name);
    if (meant == nullptr || meant->command_line_only) continue;
    s.warnings.push_back(
        fmt::format("the environment variable {} means nothing; did you mean {}?", v, meant->variable()));
  }
}

void take_arguments(started_with& s, std::span<const std::string> arguments) {
  check_values_are_there(arguments);
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  std::vector<const CLI::Option*> given;
  for (const option_info& info : table) {
    CLI::Option* o = is_flag(info) ? app.add_flag(info.flag()) : app.add_option(info.flag());
    given.push_back(o->multi_option_policy(CLI::MultiOptionPolicy::TakeLast));
  }
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& e) {
    fail(e.what());
  }
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given[i]->count() == 0) continue;
    set(s.values, table[i], table[i].flag(), given[i]->results().back());
  }
  const auto rest = app.remaining();
  check_nothing_unknown(rest);
  s.rest.insert(s.rest.end(), rest.begin(), rest.end());
}

}  // namespace

std::string option_info::flag() const { return fmt::format("{}{}", prefix, name); }

std::string option_info::variable() const {
  if (command_line_only) return {};
  std::string v{variable_prefix};
  for (const char c : name) v += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return v;
}

std::string option_info::placeholder() const {
  return std::visit(overloaded{
                        [](bool options::*) { return std::string("yes|no"); },
                        [](std::uint32_t options::*) { return std::string("N"); },
                        [](std::uint64_t options::*) { return std::string("SIZE"); },
                        [](std::chrono::nanoseconds options::*) { return std::string("TIME"); },
                        [](std::string options::* m) {
                          return std::string(m == &options::world || m == &options::role ? "NAME"
                                             : m == &options::sim                        ? "LIST"
                                             : m == &options::advise_net                 ? "NET"
                                             : m == &options::mpi                        ? "auto|off|PATH"
                                                                                         : "PATH");
                        },
                        [](waiting options::*) { return fmt::format("{}", fmt::join(waiting_names, "|")); },
                    },
                    value);
}

std::string option_info::default_text() const {
  if (!automatic.empty()) return std::string(automatic);
  const options o;
  return std::visit(
      overloaded{
          [&](bool options::* m) { return std::string(o.*m ? "yes" : "no"); },
          [&](std::uint32_t options::* m) { return std::to_string(o.*m); },
          [&](std::uint64_t options::* m) { return size_text(o.*m); },
          [&](std::chrono::nanoseconds options::* m) { return time_text(static_cast<std::uint64_t>((o.*m).count())); },
          [&](std::string options::* m) { return o.*m; },
          [&](waiting options::* m) { return std::string(waiting_names[static_cast<std::size_t>(o.*m)]); },
      },
      value);
}

std::span<const option_info> option_table() { return table; }

started_with parse_options(std::span<const std::string> arguments, const environment& environment,
                           std::span<const std::string> variables) {
  started_with s;
  take_environment(s, environment, variables);
  if (arguments.empty()) return s;
  s.rest.push_back(arguments.front());
  take_arguments(s, arguments.subspan(1));
  return s;
}

started_with parse_options(std::span<const std::string> arguments) {
  std::vector<std::string> variables;
  for (char** e = environ; e != nullptr && *e != nullptr; ++e) {
    const std::string_view v = *e;
    variables.emplace_back(v.substr(0, v.find('=')));
  }
  const auto lookup = [](std::string_view name) -> std::optional<std::string> {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): before there are threads
    const char* const value = std::getenv(std::string(name).c_str());
    return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
  };
  return parse_options(arguments, lookup, variables);
}

std::string options_help(std::string_view program) {
  std::string text = fmt::format(
      "Usage: {} [options of the program and of the runtime]\n\n"
      "Options of the Orrery runtime. It takes them from the arguments before the program sees\n"
      "these, or from the environment; -- ends them.\n",
      program);
  for (const option_info& info : table) {
    const std::string flag = is_flag(info) ? info.flag() + (info.command_line_only ? "" : "[=yes|no]")
                                           : fmt::format("{}={}", info.flag(), info.placeholder());
    fmt::format_to(std::back_inserter(text), "\n  {:<42}{}\n      {}\n", flag, info.variable(), info.meaning);
    if (!info.command_line_only) fmt::format_to(std::back_inserter(text), "      default: {}\n", info.default_text());
  }
  text += "\nA SIZE is 4096, 64K, 1M or 2G; a TIME is 50us, 1ms or 2s.\n";
  return text;
}

std::string options_markdown() {
  std::string text =
      "| option | environment | default | meaning |\n"
      "| --- | --- | --- | --- |\n";
  for (const option_info& info : table) {
    const std::string flag = is_flag(info) ? info.flag() : fmt::format("{}={}", info.flag(), info.placeholder());
    std::string shown;  // | would end the cell
    for (const char c : flag) shown += c == '|' ? std::string("\\|") : std::string(1, c);
    const std::string variable = info.variable();
    fmt::format_to(std::back_inserter(text), "| `{}` | {} | {} | {} |\n", shown,
                   variable.empty() ? "" : fmt::format("`{}`", variable),
                   info.command_line_only ? "" : info.default_text(), info.meaning);
  }
  return text;
}

scheduler::node_settings node_settings_of(const options& o) {
  scheduler::node_settings s;
  s.pes = o.pes;
  s.pin = o.pin;
  s.pe.method_stack = o.method_stack;
  s.pe.function_stack = o.function_stack;
  s.pe.mailbox_bytes = static_cast<std::uint32_t>(o.mailbox);
  s.pe.ring_bytes = o.ring;
  s.queue_bytes = o.queue_memory;
  s.stuck_ns = o.stuck.count();
  s.pe.follow_order = o.check_sharing;
  const auto network = parse_network(o.advise_net, "--orrery-advise-net");
  if (o.advise) s.pe.advise_for = network;
  switch (o.waiting) {
    case waiting::wait:  // no time is for ever: what is added to it must not overflow
      s.pe.spin_ns = std::chrono::nanoseconds(std::chrono::years(1)).count();
      break;
    case waiting::notify:
      s.pe.spin_ns = o.spin.count();
      break;
    case waiting::immediate:
      s.pe.spin_ns = 0;
      break;
  }
  return s;
}

}  // namespace orrery
