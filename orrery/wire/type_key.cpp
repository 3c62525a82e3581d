// SPDX-License-Identifier: Apache-2.0
#include <orrery/wire/type_key.hpp>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <functional>
#include <memory>

#include <cxxabi.h>

namespace orrery::wire {
namespace {

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

// Where the template argument that begins there ends.
std::size_t end_of_argument(std::string_view text, std::size_t at) noexcept {
  int depth = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '<' || c == '(') ++depth;
    if (depth == 0 && (c == ',' || c == '>')) break;
    if (c == '>' || c == ')') --depth;
  }
  return at;
}

void erase_arguments(std::string& text, std::string_view like) {
  for (std::size_t at = 0; (at = text.find(like, at)) != std::string::npos;)
    text.erase(at, end_of_argument(text, at + 2) - at);
}

// "3ul" is 3.
void erase_suffixes(std::string& text) {
  for (std::size_t at = 1; at < text.size(); ++at) {
    if (std::isdigit(static_cast<unsigned char>(text[at - 1])) == 0 || (text[at] != 'u' && text[at] != 'l')) continue;
    std::size_t begin = at - 1;
    while (begin != 0 && std::isdigit(static_cast<unsigned char>(text[begin - 1])) != 0) --begin;
    const std::size_t end = std::min(text.find_first_not_of("ul", at), text.size());
    const bool number = begin == 0 || std::string_view("<, (-").find(text[begin - 1]) != std::string_view::npos;
    if (number && (end == text.size() || std::string_view(">,}").find(text[end]) != std::string_view::npos))
      text.erase(at, end - at);
  }
}

std::string demangle(std::string_view key) {
  const std::string ended(key);
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(ended.c_str(), nullptr, nullptr, &status),
                                                         &std::free);
  return status == 0 && text != nullptr ? std::string(text.get()) : ended;
}

}  // namespace

bool is_type_key(std::string_view text) noexcept { return text.starts_with("N6orrery4wire10keyed_typeI"); }

std::string stable_key(std::string_view key) {
  std::string text(key);
  // GCC marks what is static in a namespace without a name
  replace_all(text, "12_GLOBAL__N_1L", "12_GLOBAL__N_1");
  replace_all(text, "LDn0E", "LDnE");                      // nullptr as an argument of a template
  return text;
}

bool is_local_key(std::string_view key) {
  if (key.find("$_") != std::string_view::npos) return true;
  if (key.find("Ul") == std::string_view::npos && key.find("Ut") == std::string_view::npos) return false;
  const std::string text = demangle(key);
  return text.find("{lambda(") != std::string::npos || text.find("{unnamed type#") != std::string::npos;
}

std::string readable_key(std::string_view key) {
  std::string text = demangle(key);
  constexpr std::string_view around = "orrery::wire::keyed_type<";
  if (text.starts_with(around) && text.ends_with('>')) {
    text.erase(0, around.size());
    text.pop_back();
    if (text.ends_with(' ')) text.pop_back();
  }
  replace_all(text, "std::__cxx11::", "std::");
  for (const std::string_view like : {", std::allocator<", ", std::char_traits<", ", std::less<", ", std::equal_to<",
                                      ", std::hash<", ", std::default_delete<"})
    erase_arguments(text, like);
  replace_all(text, "> >", ">>");
  replace_all(text, "> >", ">>");
  replace_all(text, "std::basic_string<char>", "std::string");
  replace_all(text, "std::basic_string_view<char>", "std::string_view");
  erase_suffixes(text);
  replace_all(text, ", 18446744073709551615>", ">");  // the extent of a span
  return text;
}

}  // namespace orrery::wire
