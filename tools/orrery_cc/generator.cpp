// SPDX-License-Identifier: Apache-2.0
#include <tools/orrery_cc/generator.hpp>
#include <tools/orrery_cc/rewriter.hpp>

#include <cctype>
#include <map>

#include <fmt/format.h>
#include <xxhash.h>

namespace orrery_cc {

namespace {

using fmt::format;
using std::string;
using std::string_view;

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

class generator {
 public:
  generator(const source& from, const program& found, string_view file)
      : from_(from), found_(found), file_(file), out_(from) {}

  string run() {
    if (!found_.knows_runtime) {
      const auto [at, name] = first_definition();
      error(at, name, "messages and tasks need #include <orrery/task.h> before them");
      throw source_error(errors_);
    }
    for (const message_definition& m : found_.messages) {
      if (m.has_functions) {
        translate_with_functions(m);
      } else {
        translate(m);
      }
    }
    for (const task_definition& t : found_.tasks) translate(t);
    for (const function_definition& f : found_.functions)
      if (f.name == "main") rename_main(f);
    if (!errors_.empty()) throw source_error(errors_);
    return out_.result() + at_end_;
  }

 private:
  void error(std::size_t at, string_view name, string_view what) {
    errors_ += describe(from_.where(at), "error", what, name.size());
  }
  [[nodiscard]] std::pair<std::size_t, string_view> first_definition() const {
    if (found_.tasks.empty() || (!found_.messages.empty() && found_.messages[0].begin < found_.tasks[0].begin))
      return {found_.messages[0].name_at, found_.messages[0].name};
    return {found_.tasks[0].name_at, found_.tasks[0].name};
  }
  // Lines for the end of the file, which stand where `at` does.
  void append_generated(std::size_t at, const string& what) {
    at_end_ += "\n" + rewriter::marker(from_.where(at), " 3") + what + "\n";
  }

  // --- messages ------------------------------------------------------------------------------------------------
  void translate(const message_definition& m) {
    out_.replace(m.begin, m.begin + 7, format("typedef struct {0} *{0}; struct", m.name));
    string fields;
    std::size_t count = 0;
    name_buffers(m.members);
    for (const member& each : m.members) {
      const string field = field_of(m, each);
      if (field.empty()) continue;
      fields += (count++ == 0 ? "" : ", ") + field;
    }
    string code = format("static const orrery_message_type {}_type; ", m.name);
    if (count != 0) code += format("static const orrery_field {}_fields_[] = {{{}}}; ", m.name, fields);
    code += format(
        "static const orrery_message_type {0}_type = {{\"{0}\", 0x{1:016x}ULL, sizeof(struct {0}), {2}, {3}}}; "
        "static inline {0} {0}_clone(const struct {0} *value) {{ return ({0})orrery_clone(&{0}_type, value); }} "
        "static inline {0} {0}_open(orrery_message *message) {{ return ({0})orrery_open(message, &{0}_type); }} "
        "static inline orrery_status {0}_send(orrery_task to, uint64_t tag, const struct {0} *value) "
        "{{ return orrery_send(to, tag, &{0}_type, value, ORRERY_WAIT); }} "
        "static inline orrery_status {0}_try_send(orrery_task to, uint64_t tag, const struct {0} *value) "
        "{{ return orrery_send(to, tag, &{0}_type, value, ORRERY_TRY); }}",
        m.name, id_of(m), count, count != 0 ? m.name + "_fields_" : "0");
    out_.insert_generated(m.end, code);
  }

  // `buffer` is a type of the runtime. Members of one declaration have it together.
  void name_buffers(const std::vector<member>& members) {
    std::size_t last = 0;
    for (const member& each : members) {
      if (!each.names_buffer || each.type_begin == last) continue;
      out_.replace(each.type_begin, each.type_end, "orrery_buffer");
      last = each.type_begin;
    }
  }

  // The row of the table for a member that points to something; and what stands for it in the structure.
  string field_of(const message_definition& m, const member& each) {
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
    const string counter = format("((struct {} *)0)->{}", m.name, each.count);
    // It must be a whole number; ~x of any other is an error of the compiler.
    return format(
        "{{\"{0}\", ORRERY_ARRAY, {1}, sizeof(*((struct {2} *)0)->{0}), __builtin_offsetof(struct {2}, {3}), "
        "sizeof(~{4}) * 0 + sizeof({4}), (__typeof__({4}))-1 < (__typeof__({4}))1, {5}}}",
        each.name, pointer, m.name, each.count, counter, of);
  }

  // The same for the same name and members, whatever stands between their words.
  [[nodiscard]] std::uint64_t id_of(const message_definition& m) const {
    string words;
    for (const token& t : from_.tokens())
      if (t.begin >= m.name_at && t.end <= m.end && t.kind != token_kind::directive)
        words += string(from_.text_of(t)) + ' ';
    const std::uint64_t id = XXH3_64bits(words.data(), words.size());
    return id != 0 ? id : 1;  // 0 means bytes
  }

  // --- messages with functions: the thesis' form ---------------------------------------------------------------
  [[nodiscard]] const message_definition* with_functions(string_view name) const {
    for (const message_definition& m : found_.messages)
      if (m.has_functions && m.name == name) return &m;
    return nullptr;
  }
  // A function whose first parameter is the message.
  [[nodiscard]] const function_definition* find(const message_definition& m, string_view name) const {
    for (const function_definition& f : found_.functions)
      if (f.name == name && !f.parameters.empty() && f.parameters[0] == m.name) return &f;
    return nullptr;
  }
  static string parameters_of(const message_definition& m, const member& function) {
    const bool none = function.parameters.find_first_not_of(" \t\n") == string::npos || function.parameters == "void";
    return m.name + " this" + (none ? "" : ", " + function.parameters);
  }

  void translate_with_functions(const message_definition& m) {
    if (!found_.knows_thesis) {
      error(m.name_at, m.name, "a message with functions needs #include <orrery/thesis.h> before it");
      return;
    }
    out_.replace(m.begin, m.begin + 7, format("typedef struct {0} *{0}; struct", m.name));
    out_.insert(
        m.open + 1,
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
        out_.blank(each.initial_begin, each.initial_at + each.initial.size());
      }
    }
    out_.insert_generated(m.end,
                          format("extern {0} {0}_create(int tag); extern orrery_message_class {0}_class;", m.name));
    if (here) append_generated(m.end, implementation_of(m));
  }

  string implementation_of(const message_definition& m) {
    const member* pointer = nullptr;
    string bind = "this->class_ = &" + m.name + "_class; ";
    string initial;
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
        if (!each.initial.empty()) initial += format("this->{} = {}; ", each.name, each.initial);
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
      error(m.name_at, m.name,
            format(
                "message '{0}' has a pointer: write static int writeAt({0} this, void *addr) {{ ... }}, which puts its "
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
    code += format(
        "static void {0}_rebind_(void *message, size_t size) {{ {0} this = ({0}){0}_bind_(({0})message); (void)size; {1}(void)this; }} "
        "static int {0}_write_(const void *message, void *to) {{ {2} }} "
        "orrery_message_class {0}_class = {{\"{0}\", 0x{3:016x}ULL, sizeof(struct {0}), {0}_rebind_, {0}_write_, 0}}; "
        "__attribute__((constructor)) static void {0}_register_(void) {{ orrery_message_register(&{0}_class); }} "
        "{0} {0}_create(int tag) {{ {0} this = ({0})orrery_message_new(&{0}_class); this->tag = tag; "
        "this->tid = (int)0x{4:x}; this->msg_size = (int)sizeof(struct {0}); {5}return {0}_bind_(this); }} ",
        m.name, rebind,
        writes ? format("return writeAt(({0})(size_t)message, to);", m.name)
               : format("__builtin_memcpy(to, message, sizeof(struct {0})); return (int)sizeof(struct {0});", m.name),
        id_of(m), id_of(m) & 0x7fffffff, initial);
    return code;
  }

  // --- tasks ---------------------------------------------------------------------------------------------------
  // A function whose first parameter is the task.
  [[nodiscard]] const function_definition* find(const task_definition& t, string_view prefixed,
                                                string_view bare) const {
    for (const function_definition& f : found_.functions)
      if (f.name == prefixed || (f.name == bare && !f.parameters.empty() && f.parameters[0] == t.name)) return &f;
    return nullptr;
  }
  [[nodiscard]] const function_definition* handler_of(const task_definition& t, const tag& g) const {
    const string prefixed = format("{}_handle_{}", t.name, g.name);
    for (const string& bare : {"handle_" + g.name, "handle_" + g.name + "_msg", "handle_" + in_camel_case(g.name)})
      if (const auto* f = find(t, prefixed, bare)) return f;
    return nullptr;
  }
  // What its tag carries, or its handler takes.
  [[nodiscard]] string message_of(const tag& g, const function_definition* handler) const {
    if (g.typed) return g.message;
    return handler != nullptr && handler->parameters.size() > 1 ? handler->parameters[1] : string();
  }

  void translate(const task_definition& t) {
    out_.replace(t.begin, t.begin + 4, format("typedef struct {0} *{0}; struct", t.name));
    out_.insert(t.open + 1, " orrery_task taskID;");
    for (const tag& g : t.tags) out_.blank(g.begin, g.end);
    if (!t.strategy.empty()) out_.blank(t.strategy_begin, t.strategy_end);
    name_buffers(t.state);
    for (const member& each : t.state)
      if (each.initial_begin != 0) out_.blank(each.initial_begin, each.initial_at + each.initial.size());
    const function_definition* start = find(t, t.name + "_start", "start");
    const function_definition* receive = find(t, t.name + "_receive", "receive");
    bool here = start != nullptr || receive != nullptr || from_.where(t.begin).file == file_;
    for (const tag& g : t.tags) here |= handler_of(t, g) != nullptr;
    string code = interface_of(t);
    if (here) {
      require_functions(t, start);
      const bool bare = start != nullptr && start->name == "start";
      code += prototypes_of(t, start, receive, bare);
      append_generated(t.end, implementation_of(t, start, receive, bare));
    }
    out_.insert_generated(t.end, code);
  }

  // What every file has that includes the definition.
  string interface_of(const task_definition& t) {
    string code;
    for (const tag& g : t.tags)
      code +=
          format("{}{}_{}{}{}", code.empty() ? "enum { " : ", ", t.name, g.name, g.value.empty() ? "" : " = ", g.value);
    if (!code.empty()) code += " }; ";
    for (const tag& g : t.tags) {
      if (g.typed) continue;
      // Tasks of one program may share a tag: then it must mean the same number.
      const auto [at, is_new] = untyped_.emplace(g.name, g.value);
      if (is_new) {
        code += format("enum {{ {0} = {1}_{0} }}; ", g.name, t.name);
      } else if (at->second != g.value) {
        error(
            g.at, g.name,
            format(
                "tag '{0}' has another number in a task before: give both the same, or say {1}_{0} with a type: tag {0}(Message);",
                g.name, t.name));
      }
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

  void require_functions(const task_definition& t, const function_definition* start) {
    if (start == nullptr)
      error(t.name_at, t.name,
            format("task '{0}' has no function '{0}_start': write static void {0}_start({0} this) {{ ... }}", t.name));
    for (const tag& g : t.tags) {
      const function_definition* handler = handler_of(t, g);
      const string message = message_of(g, handler);
      if (handler == nullptr) {
        error(g.at, g.name,
              format("tag '{1}' of task '{0}' has no handler: write static void {0}_handle_{1}({0} this{2}) {{ ... }}",
                     t.name, g.name,
                     g.message.empty() ? (g.typed ? "" : ", Message message") : ", " + g.message + " message"));
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

  static string prototype(const function_definition& f, const string& parameters) {
    return format("{}void {}({}); ", f.is_static ? "static " : "", f.name, parameters);
  }
  string prototypes_of(const task_definition& t, const function_definition* start, const function_definition* receive,
                       bool bare) const {
    string code;
    if (start != nullptr) code += prototype(*start, t.name + " this");
    for (const tag& g : t.tags)
      if (const auto* f = handler_of(t, g)) {
        const string message = message_of(g, f);
        code += prototype(*f, message.empty() ? t.name + " this" : format("{} this, {} message", t.name, message));
      }
    if (receive != nullptr) {
      code += prototype(*receive, t.name + " this");
    } else {
      code += format(
          "static orrery_status {0}_receive_for({0} this, int64_t timeout_ns); static orrery_status {0}_receive({0} this); "
          "static void {0}_serve({0} this); ",
          t.name);
      if (bare) code += format("static orrery_status receive({} this); ", t.name);
    }
    return code;
  }

  string implementation_of(const task_definition& t, const function_definition* start,
                           const function_definition* receive, bool bare) const {
    string code = format("static const struct {} {}_initial_ = {{ .taskID = {{0, 0, 0}}", t.name, t.name);
    for (const member& each : t.state) {
      if (each.initial.empty()) continue;
      location at = from_.where(each.initial_at);
      code += format(",\n{}.{} = {}", rewriter::marker(at, at.flags), each.name, each.initial);
    }
    code += "\n" + rewriter::marker(from_.where(t.end), " 3") + "}; ";
    code += format(
        "static void {0}_run_(void *argument, size_t size) {{ {0} this = ({0})argument; (void)size; "
        "this->taskID = orrery_self(); {2}{1}(this); }} "
        "orrery_status {0}_create_at(orrery_place where, orrery_task *task) "
        "{{ return orrery_create({0}_run_, &{0}_initial_, sizeof {0}_initial_, where, task); }} "
        "orrery_task {0}_create(void) {{ orrery_task task = {{0, 0, 0}}; "
        "if ({0}_create_at(orrery_anywhere(), &task) != ORRERY_OK) orrery_log(\"{0}_create: %s\", orrery_error()); "
        "return task; }} ",
        t.name, start != nullptr ? start->name : "",
        t.strategy.empty() ? string() : format("orrery_set_strategy({}); ", t.strategy));
    if (receive != nullptr) return code;
    code += format(
        "static orrery_status {0}_receive_for({0} this, int64_t timeout_ns) {{ "
        "orrery_message received __attribute__((cleanup(orrery_release))) = {{0}}; "
        "orrery_status status = orrery_receive(&received, timeout_ns); "
        "if (status != ORRERY_OK) return status; switch (received.tag) {{ ",
        t.name);
    for (const tag& g : t.tags) {
      const auto* f = handler_of(t, g);
      if (f == nullptr) continue;
      const string message = message_of(g, f);
      if (message.empty()) {
        code += format("case (uint64_t){}_{}: {}(this); break; ", t.name, g.name, f->name);
      } else if (with_functions(message) != nullptr) {
        code += format(
            "case (uint64_t){0}_{1}: {{ {2} opened = ({2})orrery_message_adopt(&{2}_class, &received); orrery_message_keep(opened); "
            "if (opened) {3}(this, opened); else orrery_log(\"{0}: a message with tag {1} is no {2}\"); break; }} ",
            t.name, g.name, message, f->name);
      } else {
        code += format(
            "case (uint64_t){0}_{1}: {{ {2} opened = {2}_open(&received); if (opened) {3}(this, opened); "
            "else orrery_log(\"{0}: %s\", orrery_error()); break; }} ",
            t.name, g.name, message, f->name);
      }
    }
    code += format(
        "default: orrery_log(\"{0}: a message with tag %llu, which the task does not have, is dropped\", "
        "(unsigned long long)received.tag); }} return ORRERY_OK; }} "
        "static orrery_status {0}_receive({0} this) {{ return {0}_receive_for(this, -1); }} "
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

  // --- main ----------------------------------------------------------------------------------------------------
  // It runs as the first task. In C its end without a return gives 0.
  void rename_main(const function_definition& f) {
    out_.replace(f.at, f.at + 4, "orrery_user_main_");
    out_.insert(f.end, " return 0; ");
    const bool none = f.parameters.empty();
    append_generated(f.end,
                     format("static int orrery_main_(int argc, char **argv) {{ {}return orrery_user_main_({}); }} "
                            "int main(int argc, char **argv) {{ return orrery_run(argc, argv, orrery_main_); }}",
                            none ? "(void)argc; (void)argv; " : "", none ? "" : "argc, argv"));
  }

  const source& from_;
  const program& found_;
  string_view file_;
  rewriter out_;
  string at_end_;
  string errors_;
  std::map<string, string> untyped_;  // tags that are names of their own, and their numbers
};

}  // namespace

string generate(const source& from, const program& found, string_view file) {
  return generator(from, found, file).run();
}

}  // namespace orrery_cc
