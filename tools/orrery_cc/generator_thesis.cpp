// SPDX-License-Identifier: Apache-2.0
// Messages with functions, in the form of the thesis.
#include <tools/orrery_cc/generator_class.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace orrery_cc {

using fmt::format;
using std::string;
using std::string_view;

namespace {

bool ends_with_word(string_view text, string_view word) {
  const std::size_t end = text.find_last_not_of(" \t\n");
  return end != string_view::npos && text.substr(0, end + 1).ends_with(word);
}

}  // namespace

const message_definition* generator::with_functions(string_view name) const {
  for (const message_definition& m : found_.messages)
    if (m.has_functions && m.name == name) return &m;
  return nullptr;
}

bool generator::is_base_of_messages(string_view name) const {
  return found_.knows_thesis && name == "Message" &&
         std::ranges::find(found_.messages, name, &message_definition::name) == found_.messages.end();
}

// A function whose first parameter is the message.
const function_definition* generator::find(const message_definition& m, string_view name) const {
  for (const function_definition& f : found_.functions)
    if (f.name == name && !f.parameters.empty() && f.parameters[0] == m.name) return &f;
  return nullptr;
}

string generator::parameters_of(const message_definition& m, const member& function) {
  constexpr string_view blanks = " \t\n";
  const std::size_t first = function.parameters.find_first_not_of(blanks);
  const bool none =
      first == string::npos ||
      string_view(function.parameters).substr(first, function.parameters.find_last_not_of(blanks) + 1 - first) ==
          "void";
  return m.name + " this" + (none ? "" : ", " + function.parameters);
}

void generator::translate_with_functions(const message_definition& m) {
  if (!found_.knows_thesis) {
    error(m.name_at, m.name, "a message with functions needs #include <orrery/thesis.h> before it");
    return;
  }
  out_.replace(m.begin, m.begin + 7, format("typedef struct {0} *{0}; struct", m.name));
  out_.insert(
      m.open,
      format(" int tag; int tid; int msg_size; const struct orrery_message_class *class_; int (*getTag)({0} this); "
             "{0} (*clone)({0} this); void (*destroy)({0} this);",
             m.name));
  bool here = false;
  for (const string_view name : {"getTag", "clone", "destroy", "writeAt"}) here |= find(m, name) != nullptr;
  for (const member& each : m.members) {
    if (each.kind == member_kind::function) {
      here |= find(m, each.name) != nullptr;
      out_.replace(each.declarator_begin, each.declarator_end,
                   format("{}(*{})({})", each.stars, each.name, parameters_of(m, each)));
    } else if (each.initial_begin != 0) {
      give_length(each);
      out_.blank(each.initial_begin, each.initial_at + each.initial.size());
    }
  }
  out_.insert_generated(
      m.end, format("{0}\n{1}extern {2} {2}_create(int tag); extern orrery_message_class {2}_class; {3}", checks_of(m),
                    rewriter::marker(from_.where(m.end), " 3"), m.name, prototypes_of(m)));
  if (here) append_generated(m.end, implementation_of(m));
}

string generator::prototypes_of(const message_definition& m) const {
  string code;
  const auto prototype = [&](string_view name, string_view result, const string& parameters) {
    if (result.starts_with("[[")) result.remove_prefix(result.rfind("]]") + 2);
    // A type that is defined there is defined once; one without a name cannot be said again.
    const std::size_t body = result.find('{');
    const string_view before = result.substr(0, std::min(body, result.size()));
    const bool nameless =
        body != string_view::npos &&
        (ends_with_word(before, "struct") || ends_with_word(before, "union") || ends_with_word(before, "enum"));
    const string again =
        body == string_view::npos ? string(result) : string(before) + string(result.substr(result.rfind('}') + 1));
    if (const function_definition* f = find(m, name); f != nullptr && !nameless)
      code += format("{}{} {}({}); ", f->is_static ? "static " : "", again, name, parameters);
  };
  for (const member& each : m.members)
    if (each.kind == member_kind::function) prototype(each.name, each.type + each.stars, parameters_of(m, each));
  prototype("getTag", "int", m.name + " this");
  prototype("clone", m.name, m.name + " this");
  prototype("destroy", "void", m.name + " this");
  if (std::ranges::find(m.members, "writeAt", &member::name) == m.members.end())
    prototype("writeAt", "int", m.name + " this, void *addr");
  return code;
}

string generator::implementation_of(const message_definition& m) {
  const member* pointer = nullptr;
  string bind = "this->class_ = &" + m.name + "_class; ";
  string code;
  const auto standard = [&](string_view name, string_view result, const string& body) {
    if (find(m, name) != nullptr) {
      bind += format("this->{0} = {0}; ", name);
      return;
    }
    code += format("static {0} {1}_{2}_({1} this) {{ {3} }} ", result, m.name, name, body);
    bind += format("this->{0} = {1}_{0}_; ", name, m.name);
  };
  for (const member& each : m.members) {
    if (each.kind != member_kind::function) {
      if (each.pointers != 0) pointer = &each;
      continue;
    }
    bind += format("this->{0} = {0}; ", each.name);
    if (find(m, each.name) == nullptr)
      error(each.at, each.name,
            format("message '{}' has no function '{}': write static {} {}{}({}) {{ ... }}", m.name, each.name,
                   each.type, each.stars, each.name, parameters_of(m, each)));
  }
  const bool writes = find(m, "writeAt") != nullptr;
  if (pointer != nullptr && !writes)
    error(
        m.name_at, m.name,
        format("message '{0}' has a pointer: write static int writeAt({0} this, void *addr) {{ ... }}, which puts its "
               "elements behind the structure",
               m.name));
  standard("getTag", "int", "return this->tag;");
  standard("clone", m.name, format("return ({0})orrery_message_copy(&{0}_class, this);", m.name));
  standard("destroy", "void", "__builtin_free(this);");
  const string rebind =
      pointer == nullptr
          ? string()
          : format("this->{0} = size > sizeof(struct {1}) ? (void *)(this + 1) : (void *)0; ", pointer->name, m.name);
  code += format("static {0} {0}_bind_({0} this) {{ {1}return this; }} ", m.name, bind);
  const string initial = initial_values_of(m.members);
  if (!initial.empty())
    code += format("static const struct {0} {0}_initial_ = {{ .tag = 0{1}\n{2}}}; ", m.name, initial,
                   rewriter::marker(from_.where(m.end), " 3"));
  code += format(
      "static void {0}_rebind_(void *message, size_t size) {{ {0} this = ({0}){0}_bind_(({0})message); (void)size; {1}(void)this; }} "
      "static int {0}_write_(const void *message, void *to) {{ {2} }} "
      "orrery_message_class {0}_class = {{\"{0}\", {3}, sizeof(struct {0}), {5}, {0}_rebind_, {0}_write_, 0}}; "
      "__attribute__((constructor)) static void {0}_register_(void) {{ orrery_message_register(&{0}_class); }} "
      "{0} {0}_create(int tag) {{ {0} this = ({0})orrery_message_new(&{0}_class); {4}this->tag = tag; "
      "this->tid = (int)({0}_class.id & 0x7fffffff); this->msg_size = (int)sizeof(struct {0}); "
      "return {0}_bind_(this); }} ",
      m.name, rebind,
      writes ? format("return writeAt(({0})(size_t)message, to);", m.name)
             : format("__builtin_memcpy(to, message, sizeof(struct {0})); return (int)sizeof(struct {0});", m.name),
      ids_.expression(m, "struct " + m.name),
      initial.empty() ? string() : format("__builtin_memcpy(this, &{}_initial_, sizeof *this); ", m.name),
      // One that the generated destroy ends is in one piece.
      pointer == nullptr || find(m, "destroy") == nullptr
          ? string("0")
          : format("__builtin_offsetof(struct {}, {})", m.name, pointer->name));
  return code;
}

}  // namespace orrery_cc
