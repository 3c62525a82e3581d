// SPDX-License-Identifier: Apache-2.0
// clang-format off
// What re2c makes of lexer.re stands in lexer.inc, for builds without re2c; a test compares the two.
#include <tools/orrery_cc/lexer.hpp>

#include <string_view>

namespace orrery_cc {

namespace {

// Behind a raw string of GNU C, R"name(...)name", at whose first quotation mark `at` stands; null: it is none.
const char* behind_raw_string(const char* at, const char* limit) {
  constexpr std::size_t longest_name = 16;
  const std::string_view rest(at + 1, static_cast<std::size_t>(limit - at - 1));
  const std::size_t open = rest.find('(');
  if (open > longest_name || rest.substr(0, open).find_first_of(" )\\\t\v\f\n\"") != std::string_view::npos)
    return nullptr;
  const std::string end = ")" + std::string(rest.substr(0, open)) + "\"";
  const std::size_t close = rest.find(end, open + 1);
  return close != std::string_view::npos ? rest.data() + close + end.size() : nullptr;
}

}  // namespace

std::vector<token> lex(const std::string& text) {
  std::vector<token> all;
  all.reserve(text.size() / 4);
  const char* const begin = text.c_str();
  const char* const limit = begin + text.size();
  const char* cursor = begin;
  const char* marker = nullptr;
  bool line_start = true;
  for (;;) {
    const char* const start = cursor;
    const auto add = [&](token_kind kind) {
      all.push_back({kind, static_cast<std::size_t>(start - begin), static_cast<std::size_t>(cursor - begin)});
      line_start = false;
    };
    /*!re2c
      re2c:define:YYCTYPE = "unsigned char";
      re2c:define:YYCURSOR = cursor;
      re2c:define:YYMARKER = marker;
      re2c:yyfill:enable = 0;

      hex     = [0-9a-fA-F];
      ucn     = "\\u" hex{4} | "\\U" hex{8};  // as GCC's preprocessor writes other letters
      letter  = [A-Za-z_$\x80-\xff] | ucn;
      digit   = [0-9];
      escaped = "\\" [^\x00];
      prefix  = "L" | "u8" | "u" | "U";

      [ \t\v\f\r]+                                   { continue; }
      "\\\n"                                         { continue; }
      "\n"                                           { line_start = true; continue; }
      "//" [^\n\x00]*                                { continue; }
      "/*" ([^*\x00] | "*"+ [^*/\x00])* "*"+ "/"     { continue; }
      "\x00" {
        if (start == limit) break;
        add(token_kind::other);
        continue;
      }
      "#" [^\n\x00]* {
        if (!line_start) cursor = start + 1;
        add(line_start ? token_kind::directive : token_kind::other);
        line_start = false;
        continue;
      }
      letter (letter | digit)*                       { add(token_kind::name); continue; }
      "."? digit ([eEpP] [+-] | letter | digit | "." | "'" (letter | digit))*  { add(token_kind::number); continue; }
      prefix? "R" ["] {
        const char* const end = behind_raw_string(cursor - 1, limit);
        cursor = end != nullptr ? end : cursor - 1;
        add(end != nullptr ? token_kind::string : token_kind::name);
        continue;
      }
      prefix? ["] ([^"\\\n\x00] | escaped)* ["]      { add(token_kind::string); continue; }
      prefix? ['] ([^'\\\n\x00] | escaped)* [']      { add(token_kind::character); continue; }
      "<%" | "%>" | "<:" | ":>"                      { add(token_kind::other); continue; }
      [^\x00]                                        { add(token_kind::other); continue; }
    */
  }
  const std::size_t end = text.size();
  all.push_back({token_kind::end, end, end});
  return all;
}

}  // namespace orrery_cc
