// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace orrery_cc {

enum class token_kind : std::uint8_t { name, number, string, character, directive, other, end };

/// A token of preprocessed C: where it stands in the text. `other` is one character; `directive` a whole line that begins with #.
struct token {
  token_kind kind;
  std::size_t begin;
  std::size_t end;
};

/// All tokens but white space and comments; the last one is `end`. Takes any bytes.
[[nodiscard]] std::vector<token> lex(const std::string& text);

}  // namespace orrery_cc
