// SPDX-License-Identifier: Apache-2.0
#include <tools/orrery_cc/failure.hpp>
#include <tools/orrery_cc/response_file.hpp>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

namespace orrery_cc {

using std::string;
using words = std::vector<string>;

namespace {

constexpr int deepest = 100;  // as many files as one may name another

words words_in(const string& text) {
  words all;
  bool inside = false;  // a word
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (quote == 0 && std::isspace(static_cast<unsigned char>(c)) != 0) {
      inside = false;
      continue;
    }
    if (!inside) all.emplace_back();
    inside = true;
    if (c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
    } else {
      if (c == '\\' && i + 1 < text.size()) c = text[++i];
      all.back() += c;
    }
  }
  return all;
}

void add(words& to, const words& arguments, int depth) {
  for (const string& w : arguments) {
    std::error_code ignored;
    const bool named = w.size() > 1 && w[0] == '@' && !std::filesystem::is_directory(w.substr(1), ignored);
    std::ifstream in(named ? w.substr(1) : string(), std::ios::binary);
    if (!named || !in) {
      to.push_back(w);
      continue;
    }
    if (depth == deepest)
      give_up(fmt::format("{} stands in files that name each other, {} deep: take it out of one of them", w, deepest));
    add(to, words_in({std::istreambuf_iterator<char>(in), {}}), depth + 1);
  }
}

}  // namespace

words with_response_files(const words& arguments) {
  words all;
  add(all, arguments, 0);
  return all;
}

}  // namespace orrery_cc
