// SPDX-License-Identifier: Apache-2.0
// What makes a structure of C of a message of C++, and the other way.
#include <tools/orrery_cc/cpp_header_class.hpp>

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace orrery_cc {

using fmt::format;
using std::string;
using std::string_view;

string cpp_header::conversions(const message_definition& m) const {
  return type_table(m) + writes(m) + reads(m) + (has_buffers(m) ? sends(m) : "");
}

string cpp_header::copy_of(const member& each) const {
  if (each.width_end > each.declarator_end) return format("  to.{0} = from.{0};\n", each.name);  // a bit-field
  return format("  std::memcpy(&to.{0}, &from.{0}, sizeof to.{0});\n", each.name);
}

string cpp_header::writes(const message_definition& m) const {
  string text = format(
      "inline void {0}::orrery_write(const {0}& from, c::{0}& to, [[maybe_unused]] std::pmr::memory_resource& memory) {{\n"
      "  to = {{}};\n",
      m.name);
  std::set<string> counted;
  for (const member& each : m.members) {
    const string& n = each.name;
    if (is_array(each.kind))
      text += format("  orrery::tasks::set_count(to.{0}, from.{1}.size(), {2}, \"{3}.{1}\");\n", each.count, n,
                     counted.insert(each.count).second, m.name);
    switch (each.kind) {
      case member_kind::string:
        text += format("  to.{0} = orrery::tasks::text_of(from.{0}, \"{1}.{0}\");\n", n, m.name);
        break;
      case member_kind::strings:
        text += format(
            "  to.{0} = orrery::tasks::array_in<char*>(memory, from.{0}.size());\n"
            "  for (std::size_t i = 0; i < from.{0}.size(); ++i) to.{0}[i] = orrery::tasks::text_of(from.{0}[i], "
            "\"{1}.{0}\");\n",
            n, m.name);
        break;
      case member_kind::message:
        text += format(
            "  if (from.{0}) {{\n    to.{0} = orrery::tasks::array_in<c::{1}>(memory, 1);\n"
            "    {1}::orrery_write(*from.{0}, *to.{0}, memory);\n  }}\n",
            n, each.type);
        break;
      case member_kind::messages:
        text += format(
            "  to.{0} = orrery::tasks::array_in<c::{1}>(memory, from.{0}.size());\n"
            "  for (std::size_t i = 0; i < from.{0}.size(); ++i) {1}::orrery_write(from.{0}[i], to.{0}[i], memory);\n",
            n, each.type);
        break;
      case member_kind::buffer:
        text += format("  to.{0} = from.{0}.c();\n", n);
        break;
      case member_kind::buffers:
        text += format(
            "  to.{0} = orrery::tasks::array_in<orrery_buffer>(memory, from.{0}.size());\n"
            "  for (std::size_t i = 0; i < from.{0}.size(); ++i) to.{0}[i] = from.{0}[i].c();\n",
            n);
        break;
      case member_kind::array:
        text +=
            format("  to.{0} = from.{0}.empty() ? nullptr : const_cast<{1}*>(from.{0}.data());\n", n, element_of(each));
        break;
      default:
        if (!counts(m, each)) text += copy_of(each);
    }
  }
  return text + "}\n";
}

string cpp_header::reads(const message_definition& m) const {
  string text =
      format("inline void {0}::orrery_read([[maybe_unused]] c::{0}& from, [[maybe_unused]] {0}& to) {{\n", m.name);
  for (const member& each : m.members) {
    const string& n = each.name;
    const string length = format("static_cast<std::size_t>(from.{})", each.count);
    switch (each.kind) {
      case member_kind::string:
        text += format("  if (from.{0} != nullptr) to.{0} = from.{0};\n", n);
        break;
      case member_kind::strings:
        text += format(
            "  to.{0}.resize({1});\n"
            "  for (std::size_t i = 0; i < to.{0}.size(); ++i)\n    if (from.{0}[i] != nullptr) to.{0}[i] = from.{0}[i];\n",
            n, length);
        break;
      case member_kind::message:
        text += format(
            "  if (from.{0} != nullptr) {{\n    {2};\n    {1}::orrery_read(*from.{0}, *to.{0});\n  }}\n", n, each.type,
            each.type == m.name ? format("to.{} = std::make_unique<{}>()", n, m.name) : format("to.{}.emplace()", n));
        break;
      case member_kind::messages:
        text += format(
            "  to.{0}.resize({1});\n"
            "  for (std::size_t i = 0; i < to.{0}.size(); ++i) {2}::orrery_read(from.{0}[i], to.{0}[i]);\n",
            n, length, each.type);
        break;
      case member_kind::buffer:
        text += format("  to.{0} = orrery::tasks::buffer(from.{0});\n", n);
        break;
      case member_kind::buffers:
        text += format("  for (std::size_t i = 0; i < {1}; ++i) to.{0}.emplace_back(from.{0}[i]);\n", n, length);
        break;
      case member_kind::array:
        text += format("  if (from.{0} != nullptr) to.{0}.assign(from.{0}, from.{0} + {1});\n", n, length);
        break;
      default:
        if (!counts(m, each)) text += copy_of(each);
    }
  }
  return text + "}\n";
}

string cpp_header::sends(const message_definition& m) const {
  string text = format("inline void {0}::orrery_sent({0}& value) noexcept {{\n", m.name);
  for (const member& each : m.members) {
    const bool is_message = each.kind == member_kind::message || each.kind == member_kind::messages;
    if (is_message && each.type != m.name &&
        !has_buffers(*std::ranges::find(found_.messages, each.type, &message_definition::name)))
      continue;
    if (each.kind == member_kind::buffer) text += format("  value.{}.forget();\n", each.name);
    if (each.kind == member_kind::buffers) text += format("  for (auto& each : value.{}) each.forget();\n", each.name);
    if (each.kind == member_kind::message)
      text += format("  if (value.{0}) {1}::orrery_sent(*value.{0});\n", each.name, each.type);
    if (each.kind == member_kind::messages)
      text += format("  for (auto& each : value.{0}) {1}::orrery_sent(each);\n", each.name, each.type);
  }
  return text + "}\n";
}

}  // namespace orrery_cc
