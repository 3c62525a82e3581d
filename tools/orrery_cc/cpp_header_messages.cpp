// SPDX-License-Identifier: Apache-2.0
// Messages as structures of C and of C++, and their tables.
#include <tools/orrery_cc/cpp_header_class.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace orrery_cc {

using fmt::format;
using std::string;
using std::string_view;

bool cpp_header::counts(const message_definition& m, const member& each) {
  return std::ranges::any_of(m.members, [&](const member& o) { return is_array(o.kind) && o.count == each.name; });
}
bool cpp_header::has_buffers(const message_definition& m) const {
  return std::ranges::any_of(m.members, [&](const member& each) {
    if (each.kind == member_kind::buffer || each.kind == member_kind::buffers) return true;
    if ((each.kind != member_kind::message && each.kind != member_kind::messages) || each.type == m.name) return false;
    return has_buffers(*std::ranges::find(found_.messages, each.type, &message_definition::name));
  });
}
string cpp_header::plain(const member& each) const {
  return format("{} {};", type_of(each), in_cpp(each.declarator_begin, std::max(each.width_end, each.declarator_end)));
}

string cpp_header::initialized(const member& each) const {
  string text = plain(each);
  text.insert(text.size() - 1, " = {}");
  return text;
}

string cpp_header::c_form(const message_definition& m) const {
  string text = format("namespace c {{  // as C has it\nstruct {} {{\n", m.name);
  for (const member& each : m.members) {
    switch (each.kind) {
      case member_kind::string:
        text += format("  char* {};\n", each.name);
        break;
      case member_kind::strings:
        text += format("  char** {};\n", each.name);
        break;
      case member_kind::message:
      case member_kind::messages:
        text += format("  {}* {};\n", each.type, each.name);
        break;
      case member_kind::buffer:
        text += format("  orrery_buffer {};\n", each.name);
        break;
      case member_kind::buffers:
        text += format("  orrery_buffer* {};\n", each.name);
        break;
      case member_kind::array:
        text += format("  {}* {};\n", element_of(each), each.name);
        break;
      default:
        text += "  " + plain(each) + "\n";
    }
  }
  return text + "};\n}  // namespace c\n\n";
}

string cpp_header::in_cpp(const message_definition& m) const {
  string text = format("struct {} {{\n", m.name);
  for (const member& each : m.members) {
    switch (each.kind) {
      case member_kind::string:
        text += format("  std::optional<std::string> {};\n", each.name);
        break;
      case member_kind::strings:
        text += format("  std::vector<std::optional<std::string>> {};\n", each.name);
        break;
      case member_kind::message:
        text += format("  std::{}<{}> {};\n", each.type == m.name ? "unique_ptr" : "optional", each.type, each.name);
        break;
      case member_kind::messages:
        text += format("  std::vector<{}> {};\n", each.type, each.name);
        break;
      case member_kind::buffer:
        text += format("  orrery::tasks::buffer {};\n", each.name);
        break;
      case member_kind::buffers:
        text += format("  std::vector<orrery::tasks::buffer> {};\n", each.name);
        break;
      case member_kind::array:
        text += format("  std::vector<{}> {};\n", element_of(each), each.name);
        break;
      default:
        if (!counts(m, each)) text += "  " + initialized(each) + "\n";
    }
  }
  text += format(
      "\n  // For orrery::tasks::send and mail::open.\n"
      "  using orrery_c = c::{0};\n"
      "  struct orrery_table;\n"
      "  [[nodiscard]] static const orrery_message_type& orrery_type() noexcept;\n"
      "  static void orrery_write(const {0}& from, orrery_c& to, std::pmr::memory_resource& memory);\n"
      "  static void orrery_read(orrery_c& from, {0}& to);\n",
      m.name);
  if (has_buffers(m)) text += format("  static void orrery_sent({}& value) noexcept;\n", m.name);
  return text + "};\n\n";
}
string cpp_header::type_table(const message_definition& m) const {
  string rows;
  std::size_t count = 0;
  for (const member& each : m.members) {
    const string row = row_of(m, each);
    if (!row.empty()) rows += format("{}    {}", count++ == 0 ? "" : ",\n", row);
  }
  string text = format("struct {}::orrery_table {{\n", m.name);
  if (count != 0) text += "  static const orrery_field fields[];\n";
  text += "  static const orrery_message_type type;\n};\n";
  if (count != 0) text += format("inline const orrery_field {}::orrery_table::fields[] = {{\n{}}};\n", m.name, rows);
  text += format(
      "inline const orrery_message_type {0}::orrery_table::type = {{\"{0}\", {1}, sizeof(c::{0}), {2}, {3}}};\n"
      "inline const orrery_message_type& {0}::orrery_type() noexcept {{ return orrery_table::type; }}\n\n",
      m.name, ids_.expression(m, "c::" + m.name), count, count != 0 ? m.name + "::orrery_table::fields" : "nullptr");
  return text;
}
string cpp_header::row_of(const message_definition& m, const member& each) const {
  const string pointer = format("offsetof(c::{}, {})", m.name, each.name);
  string of = "nullptr";
  switch (each.kind) {
    case member_kind::string:
      return format("{{\"{}\", ORRERY_STRING, {}, 1, 0, 0, 0, nullptr}}", each.name, pointer);
    case member_kind::message:
      return format("{{\"{0}\", ORRERY_ONE, {1}, sizeof(c::{2}), 0, 0, 0, &{2}::orrery_table::type}}", each.name,
                    pointer, each.type);
    case member_kind::buffer:
      return format("{{\"{}\", ORRERY_BUFFER, {}, 0, 0, 0, 0, nullptr}}", each.name, pointer);
    case member_kind::strings:
      of = "&orrery_string_type";
      break;
    case member_kind::buffers:
      of = "&orrery_buffer_type";
      break;
    case member_kind::messages:
      of = format("&{}::orrery_table::type", each.type);
      break;
    case member_kind::array:
      break;
    default:
      return {};
  }
  return format(
      "{{\"{0}\", ORRERY_ARRAY, {1}, sizeof(*c::{2}{{}}.{0}), offsetof(c::{2}, {3}), sizeof(c::{2}::{3}), "
      "orrery::tasks::is_signed_count<decltype(c::{2}::{3})>, {4}}}",
      each.name, pointer, m.name, each.count, of);
}

}  // namespace orrery_cc
