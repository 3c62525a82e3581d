// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::tool {

/// Rows of cells, printed with columns as wide as they need to be.
class text_table {
 public:
  /// A name that begins with '>' is of a column that is aligned to the right.
  explicit text_table(std::vector<std::string> names);
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  /// The names, then the rows.
  [[nodiscard]] std::vector<std::string> lines() const;

 private:
  std::vector<std::string> names_;
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

/// Text from elsewhere as a terminal may have it, at most `longest` letters: control characters and what is not UTF-8 as '?'.
[[nodiscard]] std::string printable(std::string_view text, std::size_t longest = std::string_view::npos);
/// The same for text of several lines.
[[nodiscard]] std::string printable_lines(std::string_view text);
/// Text from elsewhere as stdout may have it: printable on a terminal; elsewhere as it is, for programs.
[[nodiscard]] std::string for_stdout(std::string text);
/// "0", "950", "12.3K", "4.56M": never longer than six letters.
[[nodiscard]] std::string short_number(double n);
/// "12 s", "3 min", "5 h", "2 d".
[[nodiscard]] std::string short_time(double seconds);
[[nodiscard]] std::string percent(double part);

}  // namespace orrery::tool
