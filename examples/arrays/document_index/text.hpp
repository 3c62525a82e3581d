// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

// Text as lines of words: what is indexed, and an index without any parallelism to compare with.

namespace document_index {

/// Where a word stands: the line of the file, and its place there. Both count from 0.
struct posting {
  std::uint32_t line = 0;
  std::uint32_t place = 0;
  friend auto operator<=>(const posting&, const posting&) = default;
};
using word_map = std::map<std::string, std::vector<posting>>;

/// The words of a line, in lower case: letters and digits of ASCII, and all of other scripts.
inline std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> all;
  std::string word;
  for (const char c : line) {
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c & 0x80) != 0) {
      word += c;
    } else if (c >= 'A' && c <= 'Z') {
      word += static_cast<char>(c - 'A' + 'a');
    } else if (!word.empty()) {
      all.push_back(std::move(word));
      word.clear();
    }
  }
  if (!word.empty()) all.push_back(std::move(word));
  return all;
}

/// All lines of a file. Throws std::runtime_error if it cannot be read.
inline std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error(path + ": cannot be read");
  std::vector<std::string> all;
  for (std::string line; std::getline(in, line);) all.push_back(std::move(line));
  return all;
}

inline void add_line(word_map& to, std::uint32_t number, std::string_view line) {
  std::uint32_t place = 0;
  for (auto& word : words_of(line)) to[std::move(word)].push_back({number, place++});
}

/// The lines with all of the words, or with the words one after the other: by looking at each line.
inline std::vector<std::uint32_t> scan(const std::vector<std::string>& lines, const std::vector<std::string>& words,
                                       bool phrase) {
  std::vector<std::uint32_t> found;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto has = words_of(lines[i]);
    const bool match =
        phrase ? !std::ranges::search(has, words).empty()
               : std::ranges::all_of(words, [&](const auto& w) { return std::ranges::find(has, w) != has.end(); });
    if (match) found.push_back(static_cast<std::uint32_t>(i));
  }
  return found;
}

}  // namespace document_index
