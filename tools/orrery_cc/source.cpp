// SPDX-License-Identifier: Apache-2.0
#include <tools/orrery_cc/source.hpp>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <boost/locale/utf.hpp>

namespace orrery_cc {

namespace {

// GCC's preprocessor writes letters as \\u and \\U with their numbers.
std::string as_written(std::string_view text) {
  if (text.find('\\') == std::string_view::npos) return std::string(text);
  std::string all;
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::uint32_t letter = 0;
    const std::string_view rest = text.substr(i);
    const std::size_t digits = rest.starts_with("\\U") ? 8 : rest.starts_with("\\u") ? 4 : 0;
    const char* const begin = text.data() + i + 2;
    if (digits == 0 || rest.size() < 2 + digits ||
        std::from_chars(begin, begin + digits, letter, 16).ptr != begin + digits) {
      all += text[i];
    } else {
      boost::locale::utf::utf_traits<char>::encode(letter, std::back_inserter(all));
      i += 1 + digits;
    }
  }
  return all;
}

}  // namespace

source::source(std::string text) : text_(std::move(text)), tokens_(lex(text_)) {
  markers_.push_back({0, 1, "<stdin>", {}});
  for (const token& t : tokens_) {
    if (t.kind != token_kind::directive) continue;
    std::string_view line = text_of(t);
    line.remove_prefix(1);
    const auto skip_blanks = [&] {
      while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
    };
    skip_blanks();
    if (line.starts_with("line")) line.remove_prefix(4);
    skip_blanks();
    std::size_t number = 0;
    const auto [end, bad] = std::from_chars(line.data(), line.data() + line.size(), number);
    if (bad != std::errc{}) continue;  // a #pragma
    line.remove_prefix(static_cast<std::size_t>(end - line.data()));
    skip_blanks();
    std::string file = markers_.back().file;
    if (line.starts_with('"')) {
      file.clear();
      std::size_t i = 1;
      for (; i < line.size() && line[i] != '"'; ++i) {
        if (line[i] == '\\' && i + 1 < line.size()) ++i;
        file += line[i];
      }
      line.remove_prefix(std::min(line.size(), i + 1));
    }
    std::string flags;
    for (const char flag : {'3', '4'})  // those that stay; 1 and 2 say that a file begins, or goes on
      if (line.find(flag) != std::string_view::npos) flags += {' ', flag};
    markers_.push_back({std::min(t.end + 1, text_.size()), number, std::move(file), std::move(flags)});
  }
}

std::vector<std::string> source::files(bool of_system) const {
  std::vector<std::string> all;
  for (const marker& m : markers_)
    if ((m.flags.find('3') != std::string::npos) == of_system && std::ranges::find(all, m.file) == all.end())
      all.push_back(m.file);
  return all;
}

location source::where(std::size_t offset) const {
  const auto behind = std::ranges::upper_bound(markers_, offset, {}, &marker::offset);
  const marker& m = *std::prev(behind);
  const std::string_view before = text_of(m.offset, offset);
  const std::size_t line_begin = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  return {m.file, m.line + static_cast<std::size_t>(std::ranges::count(before, '\n')),
          as_written(before.substr(line_begin)).size() + 1, m.flags};
}

std::string describe(const location& at, std::string_view kind, std::string_view what, std::size_t width) {
  std::string said = fmt::format("{}:{}:{}: {}: {}\n", at.file, at.line, at.column, kind, as_written(what));
  std::ifstream file(at.file == "<stdin>" ? "/dev/stdin" : at.file);  // which the driver has made a file
  std::string line;
  for (std::size_t n = 0; n < at.line && std::getline(file, line); ++n) {
  }
  if (!file || at.column > line.size()) return said;
  std::string below;
  for (std::size_t i = 0; i + 1 < at.column; ++i) below += line[i] == '\t' ? '\t' : ' ';
  below += '^';
  for (std::size_t i = 1; i < width && at.column - 1 + i < line.size(); ++i) below += '~';
  const std::string number = fmt::format("{:5}", at.line);
  said += fmt::format("{} | {}\n{} | {}\n", number, line, std::string(number.size(), ' '), below);
  return said;
}

}  // namespace orrery_cc
