// SPDX-License-Identifier: Apache-2.0
// Messages: the table of what a structure points to, and its functions.
#include <tools/orrery_cc/generator_class.hpp>

#include <fmt/format.h>

namespace orrery_cc {

using fmt::format;
using std::string;
using std::string_view;

void generator::translate(const message_definition& m) {
  out_.replace(m.begin, m.begin + 7, format("typedef struct {0} *{0}; struct", m.name));
  string fields;
  std::size_t count = 0;
  name_buffers(m.members);
  for (const member& each : m.members) {
    const string field = field_of(m, each);
    if (field.empty()) continue;
    fields += (count++ == 0 ? "" : ", ") + field;
  }
  string code = checks_of(m);
  for (const member& each : m.members)
    if (each.kind != member_kind::plain && !each.count.empty()) code += check_of_count(m, each);
  code += "\n" + rewriter::marker(from_.where(m.end), " 3");
  code += format("static const orrery_message_type {}_type; ", m.name);
  if (count != 0) code += format("static const orrery_field {}_fields_[] = {{{}}}; ", m.name, fields);
  code += format(
      "static const orrery_message_type {0}_type = {{\"{0}\", {1}, sizeof(struct {0}), {2}, {3}}}; "
      "static inline {0} {0}_clone(const struct {0} *value) {{ return ({0})orrery_clone(&{0}_type, value); }} "
      "static inline {0} {0}_open(orrery_message *message) {{ return ({0})orrery_open(message, &{0}_type); }} "
      "static inline orrery_status {0}_send(orrery_task to, uint64_t tag, const struct {0} *value) "
      "{{ return orrery_send(to, tag, &{0}_type, value, ORRERY_WAIT); }} "
      "static inline orrery_status {0}_try_send(orrery_task to, uint64_t tag, const struct {0} *value) "
      "{{ return orrery_send(to, tag, &{0}_type, value, ORRERY_TRY); }}",
      m.name, ids_.expression(m, "struct " + m.name), count, count != 0 ? m.name + "_fields_" : "0");
  out_.insert_generated(m.end, code);
}

// `buffer` is a type of the runtime. Members of one declaration have it together.
void generator::name_buffers(const std::vector<member>& members) {
  std::size_t last = 0;
  for (const member& each : members) {
    if (!each.names_buffer || each.type_begin == last) continue;
    out_.replace(each.type_begin, each.type_end, "orrery_buffer");
    last = each.type_begin;
  }
}

// The row of the table for a member that points to something; and what stands for it in the structure.
string generator::field_of(const message_definition& m, const member& each) {
  const string pointer = format("__builtin_offsetof(struct {}, {})", m.name, each.name);
  switch (each.kind) {
    case member_kind::plain:
      return {};
    case member_kind::string:
      return format("{{\"{}\", ORRERY_STRING, {}, 1, 0, 0, 0, 0}}", each.name, pointer);
    case member_kind::message:
      return format("{{\"{}\", ORRERY_ONE, {}, sizeof(struct {}), 0, 0, 0, &{}_type}}", each.name, pointer, each.type,
                    each.type);
    case member_kind::buffer:
      return format("{{\"{}\", ORRERY_BUFFER, {}, 0, 0, 0, 0, 0}}", each.name, pointer);
    default:
      break;
  }
  string of = "0";
  string declarator = "*" + each.name;
  if (each.kind == member_kind::strings) {
    of = "&orrery_string_type";
    declarator = "**" + each.name;
  } else if (each.kind == member_kind::buffers) {
    of = "&orrery_buffer_type";
  } else if (each.kind == member_kind::messages) {
    of = format("&{}_type", each.type);
    declarator = each.name;  // the type is a pointer
  }
  out_.replace(each.declarator_begin, each.declarator_end, declarator);
  string counter = format("((struct {} *)0)->{}", m.name, each.count);
  // What is wrong with it is said once.
  if (!check_of_count(m, each).empty())
    counter = format("__builtin_choose_expr({}_{}_count_, {}, 0)", m.name, each.name, counter);
  return format(
      "{{\"{0}\", ORRERY_ARRAY, {1}, sizeof(*((struct {2} *)0)->{0}), __builtin_offsetof(struct {2}, {3}), "
      "sizeof({4}), (__typeof__({4}))-1 < (__typeof__({4}))1, {5}}}",
      each.name, pointer, m.name, each.count, counter, of);
}

}  // namespace orrery_cc
