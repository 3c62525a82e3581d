// SPDX-License-Identifier: Apache-2.0
// What the members of a message are, and what they cannot be.
#include <tools/orrery_cc/parser_class.hpp>

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace orrery_cc {

using std::string;
using std::string_view;

namespace {

bool has_parts(const message_definition& m) {
  return std::ranges::any_of(m.members, [](const member& each) { return each.kind != member_kind::plain; });
}

}  // namespace

string unqualified(const string& type) {
  string all;
  for (std::size_t at = 0; at < type.size();) {
    const std::size_t end = std::min(type.find_first_of(" \t\n", at), type.size());
    const string word = type.substr(at, end - at);
    if (!word.empty() && word != "const" && word != "volatile") all += (all.empty() ? "" : " ") + word;
    at = end + 1;
  }
  return all;
}

const message_definition* parser::message_named(string_view name) const {
  const auto found = std::ranges::find(found_.messages, name, &message_definition::name);
  return found != found_.messages.end() ? &*found : nullptr;
}

bool parser::is_known_before(string_view name, std::size_t offset) const {
  return std::ranges::any_of(tokens_, [&](const token& t) { return t.begin < offset && from_.text_of(t) == name; });
}

void parser::classify(member& m, const message_definition& in) const {
  if (m.name.empty()) return;
  const token name{token_kind::name, m.at, m.at + m.name.size()};
  const string type = unqualified(m.type);
  if (messages_.contains(type) || type == "buffer") m.type = type;
  const bool of_message = messages_.contains(m.type);
  if (m.initial_begin != 0)
    fail(name, fmt::format("'{}' has an initial value, but messages have none: set it where you send", m.name));
  if (m.count == "]")
    fail(name, fmt::format("the array '{}' has no length: count its elements in a member, and write {}[count]", m.name,
                           m.name));
  const bool counted = is_counted(m, in);
  if (is_buffer(m.type)) {
    if (m.kind != member_kind::plain && !(m.kind == member_kind::array && counted))
      fail(name, fmt::format(
                     "'{}' is to be one buffer, or buffers that a member of '{}' counts: int count; buffer {}[count];",
                     m.name, in.name, m.name));
    m.kind = m.kind == member_kind::plain ? member_kind::buffer : member_kind::buffers;
    return;
  }
  switch (m.kind) {
    case member_kind::plain:
      if (of_message) m.kind = member_kind::message;
      return check_value(m);
    case member_kind::array:
      if (!counted && of_message)
        fail(name,
             fmt::format("the array '{}' of messages is to be counted by a member of '{}': int count; {} {}[count];",
                         m.name, in.name, m.type, m.name));
      if (type == "void")
        fail(name, fmt::format("'{0}' has elements of no size: write buffer {0}; for memory that is passed on, or "
                               "unsigned char {0}[{1}];",
                               m.name, counted ? m.count : "count"));
      m.kind = !counted ? member_kind::plain : of_message ? member_kind::messages : member_kind::array;
      return check_value(m);
    case member_kind::string:
    case member_kind::strings:
      if (type == "char" && (m.kind == member_kind::string || counted)) return;
      break;
    default:
      break;
  }
  fail_for_pointer(m, type);
}

// In `struct { ... };` or `union { ... };` among the members.
bool parser::stands_in_a_group(string_view name, const message_definition& in) const {
  return std::ranges::any_of(in.members, [&](const member& group) {
    return group.name.empty() && std::ranges::any_of(tokens_, [&](const token& t) {
             return t.begin >= group.type_begin && t.end <= group.type_end && from_.text_of(t) == name;
           });
  });
}

// True if a member says how many elements the array has; its type is looked at as far as its words say it.
bool parser::is_counted(const member& m, const message_definition& in) const {
  const token name{token_kind::name, m.at, m.at + m.name.size()};
  const auto find = [&](string_view n) {
    return std::ranges::find_if(in.members, [&](const member& o) { return !n.empty() && o.name == n; });
  };
  const auto counter = find(m.count);
  if (counter == in.members.end()) {
    for (const string& length : m.lengths) {
      if (find(length) == in.members.end()) continue;
      if (m.dimensions > 1)
        fail(name,
             fmt::format(
                 "'{0}' has {1} dimensions, of which '{2}' counts one: declare a structure for a row, struct row {{ "
                 "{3} x[...]; }};, and write struct row {0}[{2}];",
                 m.name, m.dimensions, length, m.type));
      if (!m.nested_count.empty())
        fail(name,
             fmt::format("'{1}', which is to count the elements of '{0}', is a member of '{2}', and members of '{3}' "
                         "itself alone count: write int {4}; before {5} {0}[{4}];",
                         m.name, m.nested_count, length, in.name, m.nested_count.substr(m.nested_count.rfind('.') + 1),
                         m.type));
      fail(name,
           fmt::format("the length of '{0}' is computed from '{1}', and a member alone counts elements: write {2} "
                       "{0}[{1}];",
                       m.name, length, m.type));
    }
    if (!m.count.empty() && stands_in_a_group(m.count, in))
      fail(name, fmt::format("'{1}', which is to count the elements of '{0}', stands in a structure or union without a "
                             "name, and members of '{2}' itself alone count: take it out of there",
                             m.name, m.count, in.name));
    if (!m.count.empty() && !is_known_before(m.count, in.begin))
      fail(name,
           fmt::format("'{1}', which is to count the elements of '{0}', is no member of '{2}': write int {1}; before "
                       "{3} {0}[{1}];",
                       m.name, m.count, in.name, m.type));
    return false;
  }
  constexpr std::array no_numbers{string_view("float"), string_view("double"), string_view("struct"),
                                  string_view("union")};
  const string type = unqualified(counter->type);
  const token at{token_kind::name, counter->at, counter->at + counter->name.size()};
  const bool no_number = counter->pointers != 0 || counter->dimensions != 0 || messages_.contains(type) ||
                         is_buffer(type) || std::ranges::any_of(no_numbers, [&](string_view w) {
                           return type == w || type.starts_with(string(w) + ' ') || type.ends_with(' ' + string(w));
                         });
  if (counter->has_width)
    fail(at, fmt::format("'{0}' counts the elements of '{1}', which a bit-field cannot: write {2} {0};", counter->name,
                         m.name, counter->type));
  if (no_number)
    fail(at, fmt::format("'{0}' counts the elements of '{1}', but is no whole number: write int {0};", counter->name,
                         m.name));
  return true;
}

// A message's structure by value would be sent with its pointers as they are.
void parser::check_value(const member& m, bool beside_functions) const {
  const string type = unqualified(m.type);
  if (!type.starts_with("struct ")) return;
  const message_definition* const of = message_named(string_view(type).substr(7));
  if (of == nullptr || !has_parts(*of)) return;
  const bool one = m.kind == member_kind::plain && m.dimensions == 0;
  fail(
      {token_kind::name, m.at, m.at + m.name.size()},
      fmt::format(
          "'{0}' is the structure of the message '{1}', whose strings, arrays and buffers would not travel with it: {3}write "
          "{1} {0}{2};",
          m.name, of->name, one ? "" : "[count]", beside_functions ? "leave out the functions, and " : ""));
}

void parser::fail_for_pointer(const member& m, const string& type) const {
  const token name{token_kind::name, m.at, m.at + m.name.size()};
  const bool to_pointers = m.pointers > 1 || m.dimensions != 0;
  const string message = type.starts_with("struct ") ? type.substr(7) : type;
  const string start = fmt::format("'{}' is a pointer, and a message cannot know to how much: ", m.name);
  if (messages_.contains(message))
    fail(
        name,
        to_pointers || message == type
            ? fmt::format(
                  "'{0}' points to '{1}', which is a pointer itself: count them in a member, and write {1} {0}[count];",
                  m.name, message)
            : fmt::format("{0}for one message, or NULL, write {1} {2};", start, message, m.name));
  if (type == "char")
    fail(name, fmt::format("{}count its elements in a member, and write char *{}[count];", start, m.name));
  if (type == "void")
    fail(name,
         fmt::format("{0}write buffer {1}; for memory that is passed on, or count the bytes in a member, and write "
                     "unsigned char {1}[count];",
                     start, m.name));
  fail(name, fmt::format("{}count its elements in a member, and write {} {}[count];", start, m.type, m.name));
}

bool parser::is_buffer(string_view type) const {
  return type == "orrery_buffer" || type == "struct orrery_buffer" || (type == "buffer" && !has_own_buffer_);
}

}  // namespace orrery_cc
