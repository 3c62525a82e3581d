// SPDX-License-Identifier: Apache-2.0
#include "text.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <fmt/format.h>

namespace orrery::tool {

text_table::text_table(std::vector<std::string> names) : names_(std::move(names)) {
  for (std::string& name : names_) {
    right_.push_back(name.starts_with('>'));
    if (right_.back()) name.erase(0, 1);
  }
}

std::vector<std::string> text_table::lines() const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    std::size_t width = names_[i].size();
    for (const auto& row : rows_) width = std::max(width, row[i].size());
    widths.push_back(width);
  }
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (i != 0) text += "  ";
      text += right_[i] ? fmt::format("{:>{}}", cells[i], widths[i]) : fmt::format("{:<{}}", cells[i], widths[i]);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  };
  std::vector<std::string> all{line(names_)};
  for (const auto& row : rows_) all.push_back(line(row));
  return all;
}

std::string short_number(double n) {
  constexpr const char* units[] = {"", "K", "M", "G", "T", "P", "E"};
  if (n < 999.5) return fmt::format("{:.0f}", n);
  std::size_t unit = 0;
  while (n >= 999.5 && unit + 1 < std::size(units)) {
    n /= 1000;
    ++unit;
  }
  return fmt::format("{:.{}f}{}", n, n < 9.995 ? 2 : n < 99.95 ? 1 : 0, units[unit]);
}

std::string short_time(double seconds) {
  if (seconds < 120) return fmt::format("{:.0f} s", seconds);
  if (seconds < 2 * 3600) return fmt::format("{:.0f} min", seconds / 60);
  if (seconds < 48 * 3600) return fmt::format("{:.0f} h", seconds / 3600);
  return fmt::format("{:.0f} d", seconds / 86400);
}

std::string percent(double part) { return fmt::format("{:.1f}%", 100 * part); }

}  // namespace orrery::tool
