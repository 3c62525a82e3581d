// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tools/orrery_cc/lexer.hpp>

#include <cstddef>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orrery_cc {

/// A place in the user's files.
struct location {
  std::string file;
  std::size_t line = 1;
  std::size_t column = 1;
  std::string flags;  ///< of the line marker: " 3" for a system header
};

/// A preprocessed source, and where its text comes from.
///
/// The preprocessor says so in line markers, `# 12 "weather.c" 2`. Lines between two markers follow each other. Owned by the translator of one file;
/// nothing in it changes.
class source {
 public:
  explicit source(std::string text);

  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  [[nodiscard]] const std::vector<token>& tokens() const noexcept { return tokens_; }
  /// Of a digraph, what it stands for.
  [[nodiscard]] std::string_view text_of(const token& t) const noexcept {
    const std::string_view is = std::string_view(text_).substr(t.begin, t.end - t.begin);
    if (t.kind != token_kind::other || is.size() != 2) [[likely]]
      return is;
    return is == "<%" ? "{" : is == "%>" ? "}" : is == "<:" ? "[" : "]";
  }
  [[nodiscard]] std::string_view text_of(std::size_t begin, std::size_t end) const noexcept {
    return std::string_view(text_).substr(begin, end - begin);
  }
  /// The files that it comes from, each once, in the order of their first lines; system headers without the others, or the others.
  [[nodiscard]] std::vector<std::string> files(bool of_system) const;
  /// Where that byte comes from.
  [[nodiscard]] location where(std::size_t offset) const;

 private:
  struct marker {
    std::size_t offset;  ///< of the line behind it
    std::size_t line;
    std::string file;
    std::string flags;
  };
  std::string text_;
  std::vector<token> tokens_;
  std::vector<marker> markers_;
};

/// An error or warning, as compilers write them: "weather.c:3:6: error: ...", the line, and a caret below it. `width` characters are
/// underlined.
[[nodiscard]] std::string describe(const location& at, std::string_view kind, std::string_view what, std::size_t width);

/// A mistake in the user's source; what() is as describe() makes it.
class source_error : public std::exception {
 public:
  explicit source_error(std::string text) : text_(std::move(text)) {}
  [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

}  // namespace orrery_cc
