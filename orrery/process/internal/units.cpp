// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/internal/units.hpp>

#include <cctype>
#include <charconv>
#include <map>
#include <span>
#include <system_error>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

namespace orrery::detail {

namespace {

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

// Numbers with a unit as CLI11 reads them. It takes a sign or a unit alone, too, and other bases.
std::optional<std::uint64_t> converted(const CLI::Validator& convert, std::string text) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text.front())) == 0) return std::nullopt;
  if (has_leading_zero(text)) return std::nullopt;
  try {
    if (!convert(text).empty()) return std::nullopt;
  } catch (const CLI::ValidationError&) {
    return std::nullopt;
  }
  return to_number(text);
}

}  // namespace

std::optional<std::uint64_t> to_number(std::string_view text) {
  std::uint64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return n;
}

bool has_leading_zero(std::string_view text) {
  constexpr std::string_view second_letters = "0123456789xX";
  return text.size() > 1 && text[0] == '0' && second_letters.contains(text[1]);
}

std::optional<std::uint64_t> to_size(const std::string& text) { return converted(CLI::AsSizeValue(false), text); }

std::optional<std::uint64_t> to_time(const std::string& text) {
  static const std::map<std::string, std::uint64_t> units{
      {"ns", 1}, {"us", microsecond}, {"ms", 1000 * microsecond}, {"s", second}, {"min", 60 * second}};
  if (text == "0") return 0;
  return converted(CLI::AsNumberWithUnit(units, CLI::AsNumberWithUnit::UNIT_REQUIRED), text);
}

std::string size_text(std::uint64_t n) { return with_unit(n, size_units); }
std::string time_text(std::uint64_t ns) { return with_unit(ns, time_units); }

}  // namespace orrery::detail
