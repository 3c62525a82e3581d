// SPDX-License-Identifier: Apache-2.0
// What C++ cannot have.
#include <tools/orrery_cc/cpp_header_class.hpp>

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace orrery_cc {

using fmt::format;
using std::string;
using std::string_view;

namespace {

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

}  // namespace

void cpp_header::check(const message_definition& m) {
  if (m.has_functions)
    error(m.name_at, m.name,
          format("message '{}' has functions, which are of C: C++ can have messages of <orrery/task.h> only", m.name));
  check_name(m.name_at, m.name);
  for (const member& each : m.members) {
    check_name(each.at, each.name);
    if (each.name.empty())
      error(each.type_begin, from_.text_of(each.type_begin, each.type_end),
            format("a member of '{}' has no name, which C++ needs to copy it: give it one", m.name));
    if (is_array(each.kind) && each.type.find('{') != string::npos)
      error(each.at, each.name,
            format("the type of the elements of '{}' has no name, which C++ needs: declare the structure before",
                   each.name));
  }
}
void cpp_header::check(const task_definition& t) {
  check_name(t.name_at, t.name);
  for (const tag& g : t.tags) {
    check_name(g.at, g.name);
    if (!g.typed)
      error(g.at, g.name, format("tag '{0}' has no type, which C++ needs: write tag {0}(Message);", g.name));
  }
}
void cpp_header::check_name(std::size_t at, const string& name) {
  if (std::ranges::find(words_of_cpp, name) != words_of_cpp.end())
    error(at, name, format("'{}' is a word of C++: give it another name", name));
}

}  // namespace orrery_cc
