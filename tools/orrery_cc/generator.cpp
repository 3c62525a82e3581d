// SPDX-License-Identifier: Apache-2.0
#include <tools/orrery_cc/generator.hpp>
#include <tools/orrery_cc/generator_class.hpp>

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace orrery_cc {

using fmt::format;
using std::string;
using std::string_view;

string generator::run() {
  if (!found_.knows_runtime) {
    const auto [at, name] = first_definition();
    error(at, name, "messages and tasks need #include <orrery/task.h> before them");
    throw source_error(errors_);
  }
  if (!old_standard_.empty()) {
    const auto [at, name] = first_definition();
    error(
        at, name,
        format(
            "messages and tasks need C of 1999 or later, and {} asks for less: write -std=c11 or -std=gnu89, or leave it out",
            old_standard_));
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
    if (f.name == "main") wrap_main(f);
  if (!errors_.empty()) throw source_error(errors_);
  return out_.result() + at_end_;
}

void generator::error(std::size_t at, string_view name, string_view what) {
  errors_ += describe(from_.where(at), "error", what, name.size());
}

std::pair<std::size_t, string_view> generator::first_definition() const {
  if (found_.tasks.empty() || (!found_.messages.empty() && found_.messages[0].begin < found_.tasks[0].begin))
    return {found_.messages[0].name_at, found_.messages[0].name};
  return {found_.tasks[0].name_at, found_.tasks[0].name};
}

// Lines for the end of the file, which stand where `at` does.
void generator::append_generated(std::size_t at, const string& what) {
  at_end_ += "\n" + rewriter::marker(from_.where(at), " 3") + what + "\n";
}

// It runs as the first task. It stays `main` in the source; its symbol is another one, and the
// symbol `main` is that of a function that starts the runtime.
void generator::wrap_main(const function_definition& f) {
  const bool has_prototype = f.parameters_end != 0 && f.parameters_begin != 0;
  // Before its first use: some compilers give a function no symbol after that.
  out_.insert_generated(
      found_.main_begin,
      format("{}main{} __asm__(\"orrery_user_main_\");", f.begin == f.at ? string("int ") : result_of(f),
             has_prototype ? from_.text_of(f.parameters_begin, f.parameters_end) : "()"));
  constexpr std::array<string_view, 4> arguments{"", "argc", "argc, argv", "argc, argv, environ"};
  const std::size_t count = std::min(f.parameters.size(), arguments.size() - 1);
  append_generated(f.end, format("static int orrery_main_(int argc, char **argv) {{ {}(void)argc; (void)argv; "
                                 "return main({}); }} "
                                 "int orrery_main_entry_(int argc, char **argv) __asm__(\"main\"); "
                                 "int orrery_main_entry_(int argc, char **argv) "
                                 "{{ return orrery_run(argc, argv, orrery_main_); }}",
                                 count == 3 ? "extern char **environ; " : "", arguments[count]));
}

// What stands before a function's name, without the parenthesis that the name may stand in.
string generator::result_of(const function_definition& f) const {
  string text(from_.text_of(f.begin, f.at));
  if (const std::size_t end = text.find_last_not_of(" \t\n"); end != string::npos && text[end] == '(') text.erase(end);
  return text + ' ';
}

string generate(const source& from, const program& found, string_view file, string_view old_standard) {
  return generator(from, found, file, old_standard).run();
}

}  // namespace orrery_cc
