// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/internal/option_value.hpp>

#include <orrery/process/detail/simulation.hpp>
#include <orrery/process/internal/units.hpp>
#include <orrery/transport/shm/rendezvous.hpp>
#include <orrery/wire/error.hpp>

#include <algorithm>
#include <bit>
#include <chrono>
#include <iterator>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace orrery::detail {

namespace {

std::optional<bool> to_bool(std::string_view text) {
  constexpr std::string_view yes[] = {"yes", "true", "on", "1"};
  constexpr std::string_view no[] = {"no", "false", "off", "0"};
  if (std::ranges::find(yes, text) != std::end(yes)) return true;
  if (std::ranges::find(no, text) != std::end(no)) return false;
  return std::nullopt;
}

[[noreturn]] void fail_value(const option_info& info, std::string_view where, std::string_view text) {
  const bool has_unit = std::holds_alternative<std::uint64_t options::*>(info.value) ||
                        std::holds_alternative<std::chrono::nanoseconds options::*>(info.value);
  fail_option(fmt::format(
      "{}={}: {}; allowed is {}", where, text,
      has_unit && has_leading_zero(text) ? "numbers are decimal and do not begin with 0" : "this value cannot be",
      allowed_values(info)));
}

}  // namespace

std::string allowed_values(const option_info& info, std::span<const std::string> roles) {
  const std::string orauto = info.automatic.empty() ? "" : ", or auto";
  return std::visit(visitor{
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
                          if (info.value == option_info::member(&options::role))
                            return roles.empty() ? std::string("the name of a role of this program")
                                                 : fmt::format("{}", fmt::join(roles, ", "));
                          if (info.value == option_info::member(&options::advise_net))
                            return std::string(allowed_networks);
                          return std::string(info.value == option_info::member(&options::world)
                                                 ? "1 to 48 letters, digits, '.', '_' and '-'"
                                                 : "a path");
                        },
                        [](waiting options::*) { return fmt::format("{}", fmt::join(waiting_names, ", ")); },
                    },
                    info.value);
}

void fail_option(const std::string& text) { throw world_error(errc::world_bad_setting, verbatim, text); }

void set_option(options& o, const option_info& info, std::string_view where, const std::string& text) {
  const auto number = [&](std::optional<std::uint64_t> n) {
    if (!info.automatic.empty() && text == "auto") return std::uint64_t{0};
    if (!n || *n < info.least || *n > info.most) fail_value(info, where, text);
    return *n;
  };
  std::visit(visitor{
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
                   if (m == &options::advise_net) (void)parse_network(text, where);  // throws
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
    fail_option(fmt::format("{}={}: this is no power of two; take {} or {}", where, text,
                            size_text(std::bit_floor(o.ring)), size_text(std::bit_ceil(o.ring))));
}

}  // namespace orrery::detail
