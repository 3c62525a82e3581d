// SPDX-License-Identifier: Apache-2.0
// What C++ cannot have.
#include <tools/orrery_cc/cpp_header_class.hpp>
#include <tools/orrery_cc/words.hpp>

#include <fmt/format.h>

namespace orrery_cc {

using fmt::format;
using std::string;
using std::string_view;

void cpp_header::check(const message_definition& m) {
  if (m.has_functions)
    error(m.name_at, m.name,
          format("message '{}' has functions, which are of C: C++ can have messages of <orrery/task.h> only", m.name));
  check_name(m.name_at, m.name);
  for (const member& each : m.members) {
    check_name(each.at, each.name);
    if (each.name == m.name)
      error(each.at, each.name,
            format("'{}' has the name of its message, which C++ does not allow: give it another one", each.name));
    if (from_.text_of(each.type_begin, each.type_end).find("_Atomic") != string::npos)
      error(each.at, each.name, format("'{}' is _Atomic, which C++ does not have: leave the word out", each.name));
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
    if (g.name == t.name)
      error(g.at, g.name,
            format("tag '{}' has the name of its task, which C++ does not allow: give it another one", g.name));
    if (!g.typed)
      error(g.at, g.name, format("tag '{0}' has no type, which C++ needs: write tag {0}(Message);", g.name));
  }
}
void cpp_header::check_name(std::size_t at, const string& name) {
  if (is_word_of_cpp(name)) error(at, name, format("'{}' is a word of C++: give it another name", name));
}

}  // namespace orrery_cc
