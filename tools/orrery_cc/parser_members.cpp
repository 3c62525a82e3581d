// SPDX-License-Identifier: Apache-2.0
// Members of messages and tasks.
#include <tools/orrery_cc/parser_class.hpp>

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace orrery_cc {

using std::string;
using std::string_view;

namespace {

constexpr std::array words_of_types{string_view("int"),      string_view("char"),   string_view("short"),
                                    string_view("long"),     string_view("signed"), string_view("_Bool"),
                                    string_view("unsigned"), string_view("bool")};
constexpr std::array words_of_storage{string_view("static"), string_view("extern"),        string_view("register"),
                                      string_view("auto"),   string_view("_Thread_local"), string_view("inline"),
                                      string_view("typedef")};

}  // namespace

// The words before the first declarator: a type, its qualifiers, attributes; the body of a structure. Attributes behind the last word belong to the
// declarator, of which that word is the name: `int x __attribute__((unused));`
std::size_t parser::specifiers() {
  const std::size_t first = at_;
  std::size_t words_end = at_;
  const auto word_before = [&](std::size_t n) {
    return at_ >= first + n ? from_.text_of(tokens_[at_ - n]) : string_view();
  };
  for (;;) {
    if (is("[") && is("[", 1)) {
      skip_group();
      continue;
    }
    if (takes_parenthesis()) {
      const bool is_type = text().find("typeof") != string_view::npos || is("_Atomic") || is("_BitInt");
      ++at_;
      skip_group();
      if (!is_type) continue;
    } else if (is("{")) {
      skip_group();
    } else if (std::ranges::find(words_of_storage, text()) != words_of_storage.end()) {
      fail(peek(), fmt::format("a member cannot be '{}': leave the word out", text()));
    } else if (is_name() || (is(":") && is_name(1) && (word_before(1) == "enum" || word_before(2) == "enum"))) {
      ++at_;  // the second: `enum E : unsigned char`
    } else {
      break;
    }
    words_end = at_;
  }
  const std::size_t behind = at_;
  if (words_end > first && !is("*") && !is("(")) at_ = words_end;
  return behind;
}

void parser::declare_members(std::vector<member>& all, string_view what, string_view name) {
  if (at_end()) fail(peek(), fmt::format("the {} '{}' has no end: a '}}' is missing", what, name));
  const std::size_t first = at_;
  if ((is("_Static_assert") || is("static_assert")) && is("(", 1)) return skip_assertion();
  const std::size_t behind = specifiers();
  const string_view last = at_ > first ? from_.text_of(tokens_[at_ - 1]) : string_view();
  const bool nameless = from_.text_of(tokens_[behind]) == ";" && last == "}";
  const std::size_t brace = brace_of_group(first, at_, nameless);
  const bool nameless_group = nameless && brace != at_;
  std::vector<member> group;
  if (brace != at_ && what == "message") group = members_of_group(brace, nameless ? "name" : "tag", name);
  if (nameless_group) at_ = behind;
  const bool nameless_width =
      is(":") && (at_ - first == 1 || std::ranges::find(words_of_types, last) != words_of_types.end());
  const bool type_alone =
      at_ - first == 1 || last == "}" || std::ranges::find(words_of_types, last) != words_of_types.end();
  const bool nested = is("(") && at_ > first && (is("*", 1) || (type_alone && is_name(1)));
  if (nested && !may_be_nested(what)) fail_for_parentheses(what, name);
  if (!is("*") && !nested && !nameless_group && !nameless_width) {
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
    m.group = group;
    m.names_buffer = m.type == "buffer" && !has_own_buffer_;
    m.at = m.declarator_begin = m.declarator_end = m.width_end = peek().begin;
    if (is(":")) {
      skip_width(m);
    } else if (!is(";")) {
      declarator(m, what, name);
    }
    all.push_back(std::move(m));
    if (!is(",")) break;
    ++at_;
  }
  if (!is(";")) fail(tokens_[at_ - 1], fmt::format("a ';' is missing behind the member '{}'", all.back().name));
  ++at_;
}

void parser::skip_assertion() {
  ++at_;
  skip_group();
  if (!is(";")) fail(tokens_[at_ - 1], "a ';' is missing behind the assertion");
  ++at_;
}

// A named member whose structure has a tag is like one whose structure is defined before: nobody
// looks into that. So `with_tag` is for structures without a name.
std::size_t parser::brace_of_group(std::size_t first, std::size_t end, bool with_tag) const {
  bool of_members = false;
  for (std::size_t i = first; i < end; ++i) {
    const string_view t = from_.text_of(tokens_[i]);
    if (begins_attribute(i)) {
      i = behind_group(t == "[" ? i : i + 1) - 1;
    } else if (t == "struct" || t == "union") {
      of_members = true;
    } else if (t == "{") {
      return of_members ? i : end;
    } else if (of_members && !with_tag) {
      return end;
    }
  }
  return end;
}

// They are members of the message to the C compiler, which is asked for their types; messages and
// buffers cannot be among them, as nobody would look for them there.
std::vector<member> parser::members_of_group(std::size_t brace, string_view lacks, string_view name) {
  const std::size_t end = std::exchange(at_, brace + 1);
  std::vector<member> all;
  while (!is("}")) {
    if (is(";")) {
      ++at_;
    } else if (const std::size_t behind = behind_enumeration(); behind != at_) {
      at_ = behind;
    } else {
      declare_members(all, "message", name);
    }
  }
  for (member& each : all) {
    const string type = unqualified(each.type);
    if (each.pointers != 0)
      fail({token_kind::other, each.declarator_begin, each.declarator_begin + 1},
           fmt::format("a structure or union without a {} has a pointer here, which is good in one OS process only: "
                       "make it a member of '{}'",
                       lacks, name));
    if (messages_.contains(type) || is_buffer(type) || each.kind == member_kind::function)
      fail({token_kind::name, each.at, each.at + each.name.size()},
           fmt::format("'{0}' stands in a structure or union without a {2}, where it would be sent as an address: "
                       "make it a member of '{1}' itself",
                       each.name, name, lacks));
    each.kind = member_kind::plain;
    check_value(each);
  }
  at_ = end;
  return all;
}

// `enum { A, B };`, which declares no member; here if there is none.
std::size_t parser::behind_enumeration() const {
  const std::size_t brace = at_ + (is_name(1) ? 2 : 1);
  if (!is("enum") || !is("{", brace - at_)) return at_;
  const std::size_t end = behind_group(brace);
  return from_.text_of(tokens_[end]) == ";" ? end + 1 : at_;
}

void parser::fail_for_parentheses(string_view what, string_view name) const {
  if (is_name(1)) fail(peek(1), fmt::format("'{0}' stands in parentheses: write {0} without them", text(1)));
  fail(peek(), fmt::format("{} '{}' has a pointer to a function or to an array here, which is good in one program only",
                           what, name));
}

// Behind the width of a bit-field, attributes, or what else stands before the next member.
void parser::skip_width(member& m) {
  m.has_width = is(":");
  while (!at_end() && !is(",") && !is(";") && !is("}") && !is("=")) {
    if (is("(") || is("[")) {
      skip_group();
    } else {
      ++at_;
    }
  }
  m.width_end = tokens_[at_ - 1].end;
}

void parser::declarator(member& m, string_view what, string_view name) {
  m.declarator_begin = peek().begin;
  int stars = 0;
  for (; is("*") || is("const") || is("restrict") || is("volatile"); ++at_) stars += is("*") ? 1 : 0;
  if (is("(")) {
    if (!may_be_nested(what)) fail_for_parentheses(what, name);
    return nested_declarator(m);
  }
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
    while (takes_parenthesis() || is("[")) {  // attributes
      if (is_name()) ++at_;
      skip_group();
    }
    return;
  }
  while (is("[") && is("[", 1)) skip_group();  // attributes
  lengths(m);
  m.declarator_end = tokens_[at_ - 1].end;
  if (stars == 1) m.kind = m.dimensions == 0 ? member_kind::string : member_kind::strings;
  if (stars == 0 && m.dimensions != 0) m.kind = member_kind::array;
  if (stars > 1) m.kind = member_kind::messages;  // classify() refuses them in messages
  skip_width(m);
  if (is("=")) initial_value(m);
}

// `(*f)(int)` and `(*f)[3]`: a task's state may have pointers to functions and arrays.
bool parser::may_be_nested(string_view what) const { return what == "task" && is("*", 1); }

void parser::nested_declarator(member& m) {
  int depth = 0;
  for (; is("(") || is("*") || is("const") || is("restrict") || is("volatile"); ++at_) depth += is("(") ? 1 : 0;
  if (!is_name()) fail(peek(), "the name of a member is expected here");
  m.name = text();
  m.at = peek().begin;
  m.pointers = 1;
  for (++at_; !at_end() && !is(";") && !is("}"); ++at_) {
    if (depth == 0 && (is(",") || is("="))) break;
    if (is("(") || is("[")) ++depth;
    if (is(")") || is("]")) --depth;
  }
  m.declarator_end = m.width_end = tokens_[at_ - 1].end;
  if (is("=")) initial_value(m);
}

void parser::lengths(member& m) {
  for (; is("[") && !is("[", 1); ++m.dimensions) {
    if (is_name(1) && is("]", 2)) m.count = text(1);
    if (is("]", 1)) m.count = "]";
    const std::size_t begin = at_;
    skip_group();
    bool names = at_ > begin + 4;  // a.b
    for (std::size_t i = begin + 1; i + 1 < at_; ++i)
      names &= (i - begin) % 2 == 1 ? tokens_[i].kind == token_kind::name : from_.text_of(tokens_[i]) == ".";
    if (names) m.nested_count = from_.text_of(tokens_[begin + 1].begin, tokens_[at_ - 2].end);
    for (std::size_t i = begin; i < at_; ++i)
      if (tokens_[i].kind == token_kind::name) m.lengths.emplace_back(from_.text_of(tokens_[i]));
  }
  if (m.dimensions != 1 && m.count != "]") m.count.clear();
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

}  // namespace orrery_cc
