// SPDX-License-Identifier: Apache-2.0
// Members of messages and tasks.
#include <tools/orrery_cc/parser_class.hpp>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace orrery_cc {

using std::string_view;

void parser::declare_members(std::vector<member>& all, string_view what, string_view name) {
  if (at_end()) fail(peek(), fmt::format("the {} '{}' has no end: a '}}' is missing", what, name));
  const std::size_t first = at_;
  while (is_name() || is("{")) {
    if (is("{")) {
      skip_group();
    } else if (takes_parenthesis()) {
      ++at_;
      skip_group();
    } else {
      ++at_;
    }
  }
  if (!is("*")) {
    // Of the names the last one is the first member's.
    if (at_ - first < 2 || tokens_[at_ - 1].kind != token_kind::name)
      fail(tokens_[first == at_ ? at_ : at_ - 1],
           fmt::format("in the {} '{}' a member with its type is expected here", what, name));
    --at_;
  }
  const std::size_t type_begin = tokens_[first].begin;
  const std::size_t type_end = tokens_[at_ - 1].end;
  for (;;) {
    member m;
    m.type = from_.text_of(type_begin, type_end);
    m.type_begin = type_begin;
    m.type_end = type_end;
    m.names_buffer = m.type == "buffer" && !has_own_buffer_;
    declarator(m, what, name);
    all.push_back(std::move(m));
    if (!is(",")) break;
    ++at_;
  }
  if (!is(";")) fail(tokens_[at_ - 1], fmt::format("a ';' is missing behind the member '{}'", all.back().name));
  ++at_;
}

void parser::declarator(member& m, string_view what, string_view name) {
  m.declarator_begin = peek().begin;
  int stars = 0;
  for (; is("*") || is("const") || is("restrict") || is("volatile"); ++at_) stars += is("*") ? 1 : 0;
  if (is("("))
    fail(peek(),
         fmt::format("{} '{}' has a pointer to a function or to an array here, which is good in one program only", what,
                     name));
  if (!is_name()) fail(peek(), fmt::format("in the {} '{}' the name of a member is expected here", what, name));
  m.name = text();
  m.at = peek().begin;
  ++at_;
  m.pointers = stars;
  if (is("(")) {
    if (what != "message") fail(tokens_[at_ - 1], fmt::format("'{}' is a function; a {} has data only", m.name, what));
    m.kind = member_kind::function;
    m.stars = std::string(static_cast<std::size_t>(stars), '*');
    const std::size_t begin = peek().end;
    skip_group();
    m.declarator_end = tokens_[at_ - 1].end;
    m.parameters = from_.text_of(begin, m.declarator_end - 1);
    return;
  }
  int dimensions = 0;
  for (; is("["); ++dimensions) {
    if (is_name(1) && is("]", 2)) m.count = text(1);
    if (is("]", 1)) m.count = "]";
    skip_group();
  }
  if (dimensions != 1 && m.count != "]") m.count.clear();
  m.declarator_end = tokens_[at_ - 1].end;
  if (stars == 1) m.kind = dimensions == 0 ? member_kind::string : member_kind::strings;
  if (stars == 0 && dimensions != 0) m.kind = member_kind::array;
  if (stars > 1) m.kind = member_kind::messages;  // classify() refuses them in messages
  while (!at_end() && !is(",") && !is(";") && !is("}") && !is("=")) ++at_;  // a bit-field
  m.width_end = tokens_[at_ - 1].end;
  if (is("=")) initial_value(m);
}

void parser::initial_value(member& m) {
  m.initial_begin = peek().begin;
  ++at_;
  m.initial_at = peek().begin;
  int depth = 0;
  for (; !at_end(); ++at_) {
    if (depth == 0 && (is(",") || is(";"))) break;
    if (is("(") || is("[") || is("{")) ++depth;
    if (is(")") || is("]") || is("}")) --depth;
    if (depth < 0) break;
  }
  m.initial = from_.text_of(m.initial_at, tokens_[at_ - 1].end);
}

void parser::classify(member& m, const message_definition& in) const {
  const token name{token_kind::name, m.at, m.at + m.name.size()};
  const bool of_message = messages_.contains(m.type);
  const bool counted = std::ranges::any_of(in.members, [&](const member& o) { return o.name == m.count; });
  if (m.initial_begin != 0)
    fail(name, fmt::format("'{}' has an initial value, but messages have none: set it where you send", m.name));
  if (m.count == "]")
    fail(name, fmt::format("the array '{}' has no length: count its elements in a member, and write {}[count]", m.name,
                           m.name));
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
      return;
    case member_kind::array:
      if (!counted && of_message)
        fail(name,
             fmt::format("the array '{}' of messages is to be counted by a member of '{}': int count; {} {}[count];",
                         m.name, in.name, m.type, m.name));
      m.kind = !counted ? member_kind::plain : of_message ? member_kind::messages : member_kind::array;
      return;
    case member_kind::string:
    case member_kind::strings: {
      std::string type = m.type;
      for (const string_view word : {"const ", " const"})
        if (const auto i = type.find(word); i != std::string::npos) type.erase(i, word.size());
      if (type == "char" && (m.kind == member_kind::string || counted)) return;
      break;
    }
    default:
      break;
  }
  fail(name,
       fmt::format("'{}' is a pointer, and a message cannot know to how much: count its elements in a member, and "
                   "write {} {}[count];",
                   m.name, m.type, m.name));
}

bool parser::is_buffer(string_view type) const {
  return type == "orrery_buffer" || (type == "buffer" && !has_own_buffer_);
}

}  // namespace orrery_cc
