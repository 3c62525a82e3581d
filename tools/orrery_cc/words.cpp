// SPDX-License-Identifier: Apache-2.0
#include <tools/orrery_cc/words.hpp>

#include <algorithm>
#include <array>
#include <cctype>

namespace orrery_cc {

using std::string_view;

namespace {

constexpr std::array words_of_c{
    string_view("auto"),     string_view("break"),    string_view("case"),     string_view("char"),
    string_view("const"),    string_view("continue"), string_view("default"),  string_view("do"),
    string_view("double"),   string_view("else"),     string_view("enum"),     string_view("extern"),
    string_view("float"),    string_view("for"),      string_view("goto"),     string_view("if"),
    string_view("inline"),   string_view("int"),      string_view("long"),     string_view("register"),
    string_view("restrict"), string_view("return"),   string_view("short"),    string_view("signed"),
    string_view("sizeof"),   string_view("static"),   string_view("struct"),   string_view("switch"),
    string_view("typedef"),  string_view("union"),    string_view("unsigned"), string_view("void"),
    string_view("volatile"), string_view("while"),    string_view("_Bool")};

constexpr std::array words_of_cpp{
    string_view("and"),       string_view("bitand"),   string_view("bitor"),    string_view("bool"),
    string_view("catch"),     string_view("class"),    string_view("compl"),    string_view("concept"),
    string_view("constexpr"), string_view("decltype"), string_view("delete"),   string_view("explicit"),
    string_view("export"),    string_view("false"),    string_view("friend"),   string_view("mutable"),
    string_view("namespace"), string_view("new"),      string_view("noexcept"), string_view("not"),
    string_view("nullptr"),   string_view("operator"), string_view("or"),       string_view("private"),
    string_view("protected"), string_view("public"),   string_view("requires"), string_view("template"),
    string_view("this"),      string_view("throw"),    string_view("true"),     string_view("try"),
    string_view("typeid"),    string_view("typename"), string_view("using"),    string_view("virtual"),
    string_view("wchar_t"),   string_view("xor"),      string_view("char8_t"),  string_view("consteval")};

bool is_identifier(string_view name) noexcept {
  const auto fits = [](char c) {
    const auto u = static_cast<unsigned char>(c);
    return std::isalnum(u) != 0 || c == '_' || u >= 0x80;
  };
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 && std::ranges::all_of(name, fits) &&
         !is_word_of_c(name) && !is_word_of_cpp(name);
}

}  // namespace

bool is_word_of_c(string_view name) noexcept { return std::ranges::find(words_of_c, name) != words_of_c.end(); }
bool is_word_of_cpp(string_view name) noexcept { return std::ranges::find(words_of_cpp, name) != words_of_cpp.end(); }

bool is_namespace(string_view name) noexcept {
  for (std::size_t at = 0; (at = name.find("::")) != string_view::npos; name.remove_prefix(at + 2))
    if (!is_identifier(name.substr(0, at))) return false;
  return is_identifier(name);
}

}  // namespace orrery_cc
