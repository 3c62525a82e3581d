// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/options.hpp>

#include <span>
#include <string>
#include <string_view>
#include <variant>

// The values of options: how they are written, and which are allowed.
namespace orrery::detail {

inline constexpr std::string_view option_prefix = "--orrery-";
inline constexpr std::string_view variable_prefix = "ORRERY_";
inline constexpr std::string_view waiting_names[] = {"wait", "notify", "immediate"};  // by number

template <class... F>
struct visitor : F... {
  using F::operator()...;
};

[[nodiscard]] inline bool is_flag(const option_info& info) {
  return std::holds_alternative<bool options::*>(info.value);
}
/// The allowed values, as a clause that follows "allowed is". `roles` are those of the program, if
/// the caller knows them.
[[nodiscard]] std::string allowed_values(const option_info& info, std::span<const std::string> roles = {});
/// Sets an option to what the user wrote; `where` is the option or the variable, as it was written.
/// Throws world_error if the value cannot be.
void set_option(options& o, const option_info& info, std::string_view where, const std::string& text);
/// Throws world_error.
[[noreturn]] void fail_option(const std::string& text);

}  // namespace orrery::detail
