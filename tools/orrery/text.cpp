// SPDX-License-Identifier: Apache-2.0
#include "text.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <fmt/format.h>
#include <unistd.h>
#include <boost/locale/utf.hpp>

namespace orrery::tool {

namespace {

bool continues(char c) noexcept { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }
std::size_t letters(std::string_view utf8) noexcept {
  return static_cast<std::size_t>(std::ranges::count_if(utf8, [](char c) { return !continues(c); }));
}

}  // namespace

std::string printable(std::string_view text, std::size_t longest) {
  using utf8 = boost::locale::utf::utf_traits<char>;
  std::string shown;
  std::size_t count = 0;
  for (auto at = text.begin(); at != text.end(); ++count) {
    if (count == longest) return shown + "...";
    const auto begin = at;
    const auto c = utf8::decode(at, text.end());
    if (c == boost::locale::utf::illegal || c == boost::locale::utf::incomplete) {
      shown += '?';
      at = begin + 1;
    } else if (c < 0x20 || (c >= 0x7f && c < 0xa0)) {
      shown += '?';
    } else {
      shown.append(begin, at);
    }
  }
  return shown;
}

std::string printable_lines(std::string_view text) {
  std::string shown;
  for (std::size_t end = 0; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1))
    shown += printable(text.substr(0, end)) + '\n';
  return shown + printable(text);
}

std::string for_stdout(std::string text) {
  static const bool terminal = ::isatty(STDOUT_FILENO) != 0;
  return terminal ? printable_lines(text) : text;
}

text_table::text_table(std::vector<std::string> names) : names_(std::move(names)) {
  for (std::string& name : names_) {
    right_.push_back(name.starts_with('>'));
    if (right_.back()) name.erase(0, 1);
  }
}

std::vector<std::string> text_table::lines() const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    std::size_t width = letters(names_[i]);
    for (const auto& row : rows_) width = std::max(width, letters(row[i]));
    widths.push_back(width);
  }
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (i != 0) text += "  ";
      const std::string pad(widths[i] - letters(cells[i]), ' ');
      text += right_[i] ? pad + cells[i] : cells[i] + pad;
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
