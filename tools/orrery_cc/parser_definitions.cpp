// SPDX-License-Identifier: Apache-2.0
// Definitions of messages and tasks.
#include <tools/orrery_cc/parser_class.hpp>
#include <tools/orrery_cc/words.hpp>

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace orrery_cc {

using std::string;
using std::string_view;

void parser::begin_definition(std::string& name, std::size_t& begin, std::size_t& name_at, std::size_t& open) {
  begin = peek().begin;
  const token& t = peek(1);
  name = text(1);
  name_at = t.begin;
  open = peek(2).end;
  if (name == "main")
    fail(t, fmt::format("'main' is the function in which a program begins: give the {} another name", text()));
  if (is_word_of_c(name)) fail(t, fmt::format("'{}' is a word of C: give the {} another name", name, text()));
  if (!names_.insert(name).second)
    fail(t, fmt::format("'{}' is defined twice: give the second another name, or its header a #pragma once", name));
  at_ += 3;
}

std::size_t parser::end_definition(string_view what, string_view name) {
  ++at_;  // the brace
  if (takes_parenthesis())
    fail(peek(), fmt::format("a {} has no attributes: leave them out, or give them to members of '{}'", what, name));
  if (!is(";")) fail(peek(), fmt::format("a ';' is missing behind the {} '{}'", what, name));
  ++at_;
  return tokens_[at_ - 1].end;
}

void parser::define_message() {
  message_definition m;
  begin_definition(m.name, m.begin, m.name_at, m.open);
  messages_.insert(m.name);
  while (!is("}")) declare_members(m.members, "message", m.name);
  for (const member& each : m.members) m.has_functions |= each.kind == member_kind::function;
  if (m.has_functions) {
    check_with_functions(m);
  } else {
    for (member& each : m.members) classify(each, m);
  }
  m.end = end_definition("message", m.name);
  found_.messages.push_back(std::move(m));
}

// A member that its writeAt cannot send, or that each such message has.
void parser::check_with_functions(const member& each, const message_definition& m) const {
  constexpr std::array of_each{string_view("tag"),    string_view("tid"),    string_view("msg_size"),
                               string_view("class_"), string_view("getTag"), string_view("clone"),
                               string_view("destroy")};
  const token name{token_kind::name, each.at, each.at + each.name.size()};
  const bool is_function = each.kind == member_kind::function;
  if (std::ranges::find(of_each, each.name) != of_each.end())
    fail(name, is_function && std::ranges::find(of_each, each.name) >= of_each.begin() + 4
                   ? fmt::format("each message with functions has '{0}': leave it out here, and write a function {0} "
                                 "with the parameter {1} this if it is to do something else",
                                 each.name, m.name)
                   : fmt::format("each message with functions has a member '{}': give yours another name", each.name));
  if (is_function) return;
  if (each.pointers > 1 || (each.pointers != 0 && each.dimensions != 0))
    fail(name,
         fmt::format("'{}' points to pointers, and a message with functions has one pointer, to what its writeAt puts "
                     "behind the structure; leave out the functions, and count the elements in a member",
                     each.name));
  if (is_buffer(unqualified(each.type)))
    fail(name, fmt::format("'{}' is a buffer, which a message with functions cannot send: leave out the functions",
                           each.name));
  if (each.pointers == 0) check_value(each, true);
  for (const string& length : each.lengths) {
    const auto counter = std::ranges::find(m.members, length, &member::name);
    if (counter == m.members.end() || counter->kind == member_kind::function) continue;
    fail(name,
         fmt::format("'{1}' counts the elements of '{0}', which it does in messages without functions only: leave "
                     "out the functions, or write {2} *{0};, and a writeAt that puts the elements behind the "
                     "structure",
                     each.name, length, each.type));
  }
}

void parser::check_with_functions(message_definition& m) const {
  int pointers = 0;
  for (member& each : m.members) {
    check_with_functions(each, m);
    // No member counts its elements.
    if (each.kind == member_kind::array) each.kind = member_kind::plain;
    if (each.kind == member_kind::function || each.pointers == 0) continue;
    if (++pointers > 1)
      fail({token_kind::name, each.at, each.at + each.name.size()},
           fmt::format(
               "'{}' is one pointer too many: a message with functions has one, to what its writeAt puts behind the "
               "structure; leave out the functions, and count the elements: {} {}[count];",
               each.name, each.type, each.name));
  }
}

void parser::define_task() {
  task_definition t;
  begin_definition(t.name, t.begin, t.name_at, t.open);
  while (!is("}")) {
    if (is("tag") && is_name(1) && (is("(", 2) || is("=", 2) || is(";", 2))) {
      declare_tag(t);
    } else if (is("strategy") && is_name(1) && is(";", 2) && (text(1).starts_with("message_") || !has_own_strategy_)) {
      declare_strategy(t);
    } else if (is("stack") && is("=", 1)) {
      declare_stack(t);
    } else {
      declare_members(t.state, "task", t.name);
    }
  }
  for (const member& each : t.state)
    if (each.count == "]" && each.initial.empty())
      fail({token_kind::name, each.at, each.at + each.name.size()},
           fmt::format("the array '{0}' of task '{1}' has no length: write one, or an initial value", each.name,
                       t.name));
  for (const member& each : t.state)
    if (each.name == "taskID")
      fail({token_kind::name, each.at, each.at + each.name.size()},
           fmt::format("'taskID' is the member of task '{}' that says which task it is: give yours another name",
                       t.name));
  t.end = end_definition("task", t.name);
  found_.tasks.push_back(std::move(t));
}

void parser::declare_strategy(task_definition& of) {
  constexpr std::pair<string_view, string_view> all[] = {
      {"message_notify", "ORRERY_NOTIFY"}, {"message_wait", "ORRERY_YIELD"}, {"message_immediate", "ORRERY_IMMEDIATE"}};
  const auto* const found = std::ranges::find(all, text(1), &std::pair<string_view, string_view>::first);
  if (found == std::end(all))
    fail(peek(1), fmt::format("'{}' is no strategy: write message_notify, message_wait or message_immediate", text(1)));
  if (!of.strategy.empty()) fail(peek(), fmt::format("task '{}' has two strategies", of.name));
  of.strategy = found->second;
  of.strategy_begin = peek().begin;
  of.strategy_end = peek(2).end;
  at_ += 3;
}

string parser::value_up_to_semicolon(std::size_t& at) {
  ++at_;
  at = peek().begin;
  const std::size_t first = at_;
  while (!at_end() && !is(";") && !is("}")) ++at_;
  return at_ == first ? string() : string(from_.text_of(at, tokens_[at_ - 1].end));
}

void parser::declare_stack(task_definition& of) {
  if (of.stack_end != 0) fail(peek(), fmt::format("task '{}' has two stacks", of.name));
  of.stack_begin = peek().begin;
  ++at_;
  of.stack = value_up_to_semicolon(of.stack_at);
  if (of.stack.empty()) fail(peek(), "a stack has a number of bytes: write stack = 256 << 10;");
  if (!is(";")) fail(peek(), "a ';' is missing behind the stack");
  ++at_;
  of.stack_end = tokens_[at_ - 1].end;
}

void parser::declare_tag(task_definition& of) {
  tag t;
  t.begin = peek().begin;
  t.name = text(1);
  t.at = peek(1).begin;
  for (const tag& other : of.tags)
    if (other.name == t.name) fail(peek(1), fmt::format("task '{}' has two tags '{}'", of.name, t.name));
  at_ += 2;
  t.typed = is("(");
  if (is("(")) {
    ++at_;
    if (is_name() && !is("void")) {
      t.message = text();
      t.message_at = peek().begin;
      if (!messages_.contains(t.message))
        fail(peek(), fmt::format("'{}' is no message that is defined before: a tag carries a message", t.message));
      if (const message_definition* m = message_named(t.message); m != nullptr && m->has_functions)
        fail(peek(), fmt::format("message '{0}' has functions, and its tags have no type: write tag {1} = 0;, and let "
                                 "the handler take it: static void handle_{1}({2} this, {0} message) {{ ... }}",
                                 t.message, t.name, of.name));
    }
    if (!is(")")) ++at_;
    if (!is(")"))
      fail(peek(), fmt::format("tag '{}' carries one message, or none: write tag {}(Message);", t.name, t.name));
    ++at_;
  }
  if (is("=")) {
    t.value = value_up_to_semicolon(t.value_at);
    if (t.value.empty())
      fail(peek(), fmt::format("tag '{0}' has no number behind its '=': write tag {0}(Message) = 7;", t.name));
  }
  if (!is(";")) fail(peek(), fmt::format("a ';' is missing behind the tag '{}'", t.name));
  ++at_;
  t.end = tokens_[at_ - 1].end;
  of.tags.push_back(std::move(t));
}

}  // namespace orrery_cc
