// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/detail/nearest.hpp>
#include <orrery/process/detail/simulation.hpp>
#include <orrery/process/internal/option_value.hpp>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <ranges>

#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

namespace orrery {

using namespace detail;

namespace {

// The option that was most likely meant by a name without its prefix; null if none is like it.
const option_info* nearest(std::string_view name) {
  detail::suggestions like(name);
  for (const option_info& info : option_table()) like.consider(info.name);
  if (like.best().empty()) return nullptr;
  return &*std::ranges::find(option_table(), like.best().front().name, &option_info::name);
}

[[noreturn]] void fail_no_value(const option_info& info, std::span<const std::string> roles) {
  fail_option(fmt::format("{0} has no value: write {0}={1}; allowed is {2}", info.flag(), info.placeholder(),
                          allowed_values(info, roles)));
}

// CLI11 would take the next argument as the value of `--x=`, and any option as that of `--x`.
void check_values_are_there(std::span<const std::string> arguments, std::span<const std::string> roles) {
  for (std::size_t i = 0; i < arguments.size() && arguments[i] != "--"; ++i) {
    for (const option_info& info : option_table()) {
      const std::string flag = info.flag();
      if (arguments[i] == flag + '=') fail_no_value(info, roles);
      if (arguments[i] != flag || is_flag(info)) continue;
      if (i + 1 == arguments.size() || arguments[i + 1].starts_with("--")) fail_no_value(info, roles);
    }
  }
}

void check_nothing_unknown(std::span<const std::string> rest) {
  for (const std::string& argument : rest) {
    if (argument == "--") return;
    if (!argument.starts_with(option_prefix)) continue;
    const std::string name = argument.substr(0, argument.find('='));
    const option_info* const meant = nearest(name.substr(option_prefix.size()));
    fail_option(fmt::format("there is no option {}; --orrery-help lists those that there are{}", name,
                            meant ? fmt::format("; did you mean {}?", meant->flag()) : ""));
  }
}

bool is_given(const option_info& info, std::span<const std::string> arguments) {
  const std::string flag = info.flag();
  const auto end = std::ranges::find(arguments, "--");
  return std::any_of(arguments.begin(), end,
                     [&](const std::string& a) { return a == flag || a.starts_with(flag + "="); });
}

void take_environment(started_with& s, const environment& lookup, std::span<const std::string> variables,
                      std::span<const std::string> arguments) {
  for (const option_info& info : option_table()) {
    if (info.command_line_only) continue;
    const std::string variable = info.variable();
    if (is_given(info, arguments)) continue;  // the command line wins, whatever the variable says
    if (const auto value = lookup(variable); value && !value->empty()) set_option(s.values, info, variable, *value);
  }
  for (const std::string& v : variables) {
    if (!v.starts_with(variable_prefix) || v.starts_with("ORRERY_INTERNAL_")) continue;
    if (std::ranges::find(option_table(), v, &option_info::variable) != option_table().end()) continue;
    std::string name = v.substr(variable_prefix.size());
    std::ranges::transform(name, name.begin(),
                           [](unsigned char c) { return c == '_' ? '-' : static_cast<char>(std::tolower(c)); });
    const option_info* const meant = nearest(name);
    if (meant == nullptr || meant->command_line_only) continue;
    s.warnings.push_back(
        fmt::format("the environment variable {} means nothing; did you mean {}?", v, meant->variable()));
  }
}

void take_arguments(started_with& s, std::span<const std::string> arguments, std::span<const std::string> roles) {
  check_values_are_there(arguments, roles);
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  std::vector<const CLI::Option*> given;
  for (const option_info& info : option_table()) {
    CLI::Option* o = is_flag(info) ? app.add_flag(info.flag()) : app.add_option(info.flag());
    given.push_back(o->multi_option_policy(CLI::MultiOptionPolicy::TakeLast));
  }
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& e) {
    fail_option(e.what());
  }
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given[i]->count() == 0) continue;
    set_option(s.values, option_table()[i], option_table()[i].flag(), given[i]->results().back());
  }
  const auto rest = app.remaining();
  check_nothing_unknown(rest);
  s.rest.insert(s.rest.end(), rest.begin(), rest.end());
}

}  // namespace

started_with parse_options(std::span<const std::string> arguments, const environment& environment,
                           std::span<const std::string> variables, std::span<const std::string> roles) {
  started_with s;
  take_environment(s, environment, variables, arguments);
  if (arguments.empty()) return s;
  s.rest.push_back(arguments.front());
  take_arguments(s, arguments.subspan(1), roles);
  return s;
}

started_with parse_options(std::span<const std::string> arguments, std::span<const std::string> roles) {
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
  return parse_options(arguments, lookup, variables, roles);
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
