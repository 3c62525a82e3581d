// SPDX-License-Identifier: Apache-2.0
// Tasks: their tags, and the functions that create them, send to them and receive.
#include <tools/orrery_cc/generator_class.hpp>

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

namespace orrery_cc {

using fmt::format;
using std::string;
using std::string_view;

namespace {

// "A_MESSAGE_TAG" as a part of a function's name: "AMessageTag".
string in_camel_case(string_view tag) {
  string name;
  bool first = true;
  for (const char c : tag) {
    if (c == '_') {
      first = true;
    } else {
      name += static_cast<char>(first ? std::toupper(static_cast<unsigned char>(c))
                                      : std::tolower(static_cast<unsigned char>(c)));
      first = false;
    }
  }
  return name;
}

}  // namespace

// A function whose first parameter is the task.
const function_definition* generator::find(const task_definition& t, string_view prefixed, string_view bare) const {
  for (const function_definition& f : found_.functions)
    if (f.name == prefixed || (f.name == bare && !f.parameters.empty() && f.parameters[0] == t.name)) return &f;
  return nullptr;
}

const function_definition* generator::handler_of(const task_definition& t, const tag& g) const {
  const string prefixed = format("{}_handle_{}", t.name, g.name);
  for (const string& other : {g.name, g.name + "_msg", in_camel_case(g.name)}) {
    // `handle_tick_msg` is that of a tag `tick_msg`, if there is one.
    if (other != g.name && std::ranges::find(t.tags, other, &tag::name) != t.tags.end()) continue;
    if (const auto* f = find(t, prefixed, "handle_" + other)) return f;
  }
  return nullptr;
}

// What its tag carries, or its handler takes.
string generator::message_of(const tag& g, const function_definition* handler) const {
  if (g.typed) return g.message;
  return handler != nullptr && handler->parameters.size() > 1 ? handler->parameters[1] : string();
}

void generator::translate(const task_definition& t) {
  out_.replace(t.begin, t.begin + 4, format("typedef struct {0} *{0}; struct", t.name));
  out_.insert(t.open, " orrery_task taskID;");
  for (const tag& g : t.tags) out_.blank(g.begin, g.end);
  if (!t.strategy.empty()) out_.blank(t.strategy_begin, t.strategy_end);
  if (!t.stack.empty()) out_.blank(t.stack_begin, t.stack_end);
  name_buffers(t.state);
  for (const member& each : t.state) give_length(each);
  for (const member& each : t.state)
    if (each.initial_begin != 0) out_.blank(each.initial_begin, each.initial_at + each.initial.size());
  const function_definition* start = find(t, t.name + "_start", "start");
  const function_definition* receive = find(t, t.name + "_receive", "receive");
  bool here = start != nullptr || receive != nullptr || from_.where(t.begin).file == file_;
  for (const tag& g : t.tags) here |= handler_of(t, g) != nullptr;
  string code = interface_of(t);
  if (here) {
    require_functions(t, start, receive != nullptr);
    const bool bare = start != nullptr && start->name == "start";
    code += prototypes_of(t, start, receive, bare);
    append_generated(t.end, implementation_of(t, start, receive, bare));
  }
  code += checks_of(t);
  out_.insert_generated(t.end, code);
}

// `int z[] = {1, 2};` has the length of its initial value, as a variable has; a member of a
// structure cannot.
void generator::give_length(const member& each) {
  if (each.count != "]" || each.initial.empty()) return;
  const string_view declarator = from_.text_of(each.at + each.name.size(), each.declarator_end);
  const std::size_t bracket = declarator.find('[');
  const string stars(static_cast<std::size_t>(each.pointers), '*');
  const string_view rest = declarator.substr(declarator.find(']') + 1);
  const string value = each.initial.starts_with('{') ? each.initial : "{" + each.initial + "}";
  out_.insert(each.at + each.name.size() + bracket + 1,
              format("sizeof(({0}{1}[]{2}){3}) / sizeof({0}{1}{2})", each.type, stars, rest, value));
}

// What every file has that includes the definition.
string generator::interface_of(const task_definition& t) {
  string code;
  for (const tag& g : t.tags) {
    code += format("{}{}_{}", code.empty() ? "enum { " : ", ", t.name, g.name);
    if (g.value.empty()) continue;
    // On its own line, as an error in the expression is the user's.
    const location at = from_.where(g.value_at);
    code += format(" =\n{}{}{}\n{}", rewriter::marker(at, at.flags), string(at.column - 1, ' '), g.value,
                   rewriter::marker(from_.where(t.end), " 3"));
  }
  if (!code.empty()) code += " }; ";
  for (const tag& g : t.tags) {
    if (g.typed) continue;
    if (untyped_.emplace(g.name, t.name).second) code += format("enum {{ {0} = {1}_{0} }}; ", g.name, t.name);
  }
  code += format(
      "extern orrery_task {0}_create(void); extern orrery_status {0}_create_at(orrery_place where, orrery_task *task); ",
      t.name);
  for (const tag& g : t.tags) {
    if (!g.typed) continue;
    for (const string_view how : {"send", "try_send"}) {
      const string_view waits = how == "send" ? "ORRERY_WAIT" : "ORRERY_TRY";
      if (g.message.empty()) {
        code += format(
            "static inline orrery_status {0}_{1}_{2}(orrery_task to) {{ return orrery_send_bytes(to, {0}_{2}, 0, 0, {3}); }} ",
            t.name, how, g.name, waits);
      } else {
        code += format(
            "static inline orrery_status {0}_{1}_{2}(orrery_task to, const struct {3} *value) "
            "{{ return orrery_send(to, {0}_{2}, &{3}_type, value, {4}); }} ",
            t.name, how, g.name, g.message, waits);
      }
    }
  }
  return code;
}

void generator::require_functions(const task_definition& t, const function_definition* start, bool own_receive) {
  if (start == nullptr)
    error(t.name_at, t.name,
          format("task '{0}' has no function '{0}_start': write static void {0}_start({0} this) {{ ... }}", t.name));
  for (const tag& g : t.tags) {
    const function_definition* handler = handler_of(t, g);
    if (own_receive) continue;  // it calls what it likes
    if (handler == nullptr) {
      error(g.at, g.name,
            g.typed
                ? format(
                      "tag '{1}' of task '{0}' has no handler: write static void {0}_handle_{1}({0} this{2}) {{ ... }}",
                      t.name, g.name, g.message.empty() ? "" : ", " + g.message + " message")
                : format("tag '{1}' of task '{0}' has no handler: write static void handle_{1}({0} this, M message) "
                         "{{ ... }}, where M is its message",
                         t.name, g.name));
    } else if (const string message = message_of(g, handler);
               !g.typed && !message.empty() && !is_base_of_messages(message) &&
               std::ranges::find(found_.messages, message, &message_definition::name) == found_.messages.end()) {
      error(handler->at, handler->name,
            format("'{}' takes '{}', which is no message of this source: a handler takes its task, and the message of "
                   "its tag",
                   handler->name, message));
    }
  }
  const string prefix = t.name + "_handle_";
  for (const function_definition& f : found_.functions) {
    if (!f.name.starts_with(prefix)) continue;
    const string name = f.name.substr(prefix.size());
    bool known = false;
    for (const tag& g : t.tags) known |= g.name == name;
    if (!known) error(f.at, f.name, format("task '{0}' has no tag '{1}'; write tag {1}(...); in it", t.name, name));
  }
}

string generator::prototype(const function_definition& f, const string& parameters) {
  return format("{}void {}({}); ", f.is_static ? "static " : "", f.name, parameters);
}

string generator::prototypes_of(const task_definition& t, const function_definition* start,
                                const function_definition* receive, bool bare) const {
  string code;
  if (start != nullptr) code += prototype(*start, t.name + " this");
  for (const tag& g : t.tags)
    if (const auto* f = handler_of(t, g)) {
      const string message = message_of(g, f);
      code += prototype(*f, message.empty() ? t.name + " this" : format("{} this, {} message", t.name, message));
    }
  if (receive != nullptr) {
    code += format("{}{}({} this); ", result_of(*receive), receive->name, t.name);
  } else {
    code += format(
        "static orrery_status {0}_receive_for({0} this, int64_t timeout_ns); static orrery_status {0}_receive({0} this); "
        "static void {0}_serve({0} this); ",
        t.name);
    if (bare) code += format("static orrery_status receive({} this); ", t.name);
  }
  return code;
}

string generator::initial_values_of(const std::vector<member>& members) const {
  string values;
  for (const member& each : members) {
    if (each.initial.empty()) continue;
    const location at = from_.where(each.initial_at);
    values += format(",\n{}.{} = {}", rewriter::marker(at, at.flags), each.name, each.initial);
  }
  return values;
}

string generator::implementation_of(const task_definition& t, const function_definition* start,
                                    const function_definition* receive, bool bare) const {
  const string values = initial_values_of(t.state);
  // Without values it is no constant, so that it takes no room in the program's file.
  string code = values.empty() ? format("static struct {0} {0}_initial_; ", t.name)
                               : format("static const struct {0} {0}_initial_ = {{ .taskID = {{0, 0, 0}}{1}\n{2}}}; ",
                                        t.name, values, rewriter::marker(from_.where(t.end), " 3"));
  string stack;  // on its own line, as an error in the expression is the user's
  if (!t.stack.empty()) {
    const location at = from_.where(t.stack_at);
    stack = t.name + "_stack_";
    code += format(
        "\n{}_Static_assert(({}) > 0 && ({}) <= (1 << 30), \"a stack has 1 byte to 1 GiB\"); enum {{ {} = {} }};\n{}",
        rewriter::marker(at, at.flags), t.stack, t.stack, stack, t.stack, rewriter::marker(from_.where(t.end), " 3"));
  }
  code += format(
      "static void {0}_run_(void *argument, size_t size) {{ {0} this = ({0})argument; (void)size; "
      "__builtin_memcpy(this, &{0}_initial_, sizeof *this); this->taskID = orrery_self(); {2}{1}(this); }} "
      "orrery_status {0}_create_at(orrery_place where, orrery_task *task) "
      "{{ return {3}({0}_run_, &{0}_initial_, sizeof {0}_initial_, {4}where, task); }} "
      "orrery_task {0}_create(void) {{ orrery_task task = {{0, 0, 0}}; "
      "if ({0}_create_at(orrery_anywhere(), &task) != ORRERY_OK) orrery_log(\"{0}_create: %s\", orrery_error()); "
      "return task; }} ",
      t.name, start != nullptr ? start->name : "",
      t.strategy.empty() ? string() : format("orrery_set_strategy({}); ", t.strategy),
      stack.empty() ? "orrery_create" : "orrery_create_with_stack", stack.empty() ? string() : stack + ", ");
  return receive != nullptr ? code : code + receive_loop_of(t, bare);
}

string generator::receive_loop_of(const task_definition& t, bool bare) const {
  string code = format(
      "static orrery_status {0}_receive_for({0} this, int64_t timeout_ns) {{ "
      "orrery_message received __attribute__((cleanup(orrery_release))) = {{0}}; "
      "orrery_status status = orrery_receive(&received, timeout_ns); "
      "if (status != ORRERY_OK) return status; ",
      t.name);
  for (const tag& g : t.tags) {
    const auto* f = handler_of(t, g);
    if (f == nullptr) continue;
    const string message = message_of(g, f);
    if (message.empty() && g.typed) {
      code += format(
          "if (received.tag == (uint64_t){0}_{1}) {{ if (received.type == 0) {2}(this); else orrery_log_failure(\"{0}: a "
          "message with tag {1} has a type, and the tag carries no message\"); }} else ",
          t.name, g.name, f->name);
    } else if (message.empty()) {  // whatever the thesis' send has sent
      code += format("if (received.tag == (uint64_t){}_{}) {}(this); else ", t.name, g.name, f->name);
    } else if (is_base_of_messages(message)) {
      code += format(
          "if (received.tag == (uint64_t){0}_{1}) {{ Message opened = (Message)orrery_message_adopt_any(&received); "
          "orrery_message_keep(opened); if (opened) {2}(this, opened); else orrery_log_failure(\"{0}: a message with tag "
          "{1} has no functions in this program\"); }} else ",
          t.name, g.name, f->name);
    } else if (with_functions(message) != nullptr) {
      code += format(
          "if (received.tag == (uint64_t){0}_{1}) {{ {2} opened = ({2})orrery_message_adopt(&{2}_class, &received); orrery_message_keep(opened); "
          "if (opened) {3}(this, opened); else orrery_log_failure(\"{0}: a message with tag {1} is no {2}\"); }} else ",
          t.name, g.name, message, f->name);
    } else {
      code += format(
          "if (received.tag == (uint64_t){0}_{1}) {{ {2} opened = {2}_open(&received); if (opened) {3}(this, opened); "
          "else orrery_log_failure(\"{0}: %s\", orrery_error()); }} else ",
          t.name, g.name, message, f->name);
    }
  }
  code += format(
      "orrery_log_failure(\"{0}: a message with tag %llu, which the task does not have, is dropped\", "
      "(unsigned long long)received.tag); return ORRERY_OK; }} "
      "static orrery_status {0}_receive({0} this) {{ return {0}_receive_for(this, 9223372036854775807LL); }} "
      "static void {0}_serve({0} this) {{ while ({0}_receive(this) == ORRERY_OK) {{}} }} ",
      t.name);
  // The thesis' receive has no result by which its loop could end.
  if (bare)
    code += format(
        "static orrery_status receive({0} this) {{ orrery_status status = {0}_receive(this); "
        "if (status == ORRERY_STOPPED) orrery_exit(); return status; }} ",
        t.name);
  return code;
}

}  // namespace orrery_cc
