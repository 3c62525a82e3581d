// SPDX-License-Identifier: Apache-2.0
// Text of C as C++ has it.
#include <tools/orrery_cc/cpp_header_class.hpp>

#include <algorithm>
#include <array>
#include <fstream>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace orrery_cc {

using fmt::format;
using std::string;
using std::string_view;

namespace {

constexpr std::array<std::pair<string_view, string_view>, 6> other_words{{{"_Bool", "bool"},
                                                                          {"_Alignas", "alignas"},
                                                                          {"_Noreturn", ""},
                                                                          {"restrict", "__restrict"},
                                                                          {"_Static_assert", "static_assert"},
                                                                          {"_Thread_local", "thread_local"}}};

}  // namespace

string cpp_header::in_cpp(std::size_t begin, std::size_t end, bool copied) const {
  string text;
  std::size_t at = begin;
  for (const token& t : from_.tokens()) {
    if (t.begin < begin || t.end > end || t.kind != token_kind::name) continue;
    const string_view word = from_.text_of(t);
    const auto* const other = std::ranges::find(other_words, word, &std::pair<string_view, string_view>::first);
    const bool dropped = copied && (word == "const" || word == "volatile");
    if (other == other_words.end() && !dropped) continue;
    text += from_.text_of(at, t.begin);
    at = t.end;
    if (dropped) {
      while (at < end && from_.text_of(at, at + 1) == " ") ++at;
    } else {
      text += other->second;
    }
  }
  return text + string(from_.text_of(at, end));
}
string cpp_header::type_of(const member& m) const {
  if (m.names_buffer) return "orrery_buffer";
  string type = in_cpp(m.type_begin, m.type_end, true);
  type.erase(type.find_last_not_of(' ') + 1);
  return type;
}
string cpp_header::element_of(const member& m) const {
  const string type = type_of(m);
  return type == "bool" ? "unsigned char" : type;  // std::vector<bool> has no bools
}
string cpp_header::includes() const {
  const std::vector<string> entered = from_.files(true);
  std::set<string> all;
  for (const string& name : from_.files(false)) {
    std::ifstream file(name);
    for (string line; std::getline(file, line);) {
      const auto first = line.find_first_not_of(" \t");
      if (first == string::npos || line[first] != '#' || line.find("include") == string::npos) continue;
      const auto open = line.find('<');
      const auto close = line.find('>');
      if (open == string::npos || close == string::npos || close < open) continue;
      const string header = line.substr(open + 1, close - open - 1);
      const bool is_used = std::ranges::any_of(entered, [&](const string& e) { return e.ends_with("/" + header); });
      if (!is_of_runtime(name) && is_used && !header.starts_with("orrery/")) all.insert(header);
    }
  }
  string text;
  for (const string& header : all) text += format("#include <{}>\n", header);
  return text;
}

}  // namespace orrery_cc
