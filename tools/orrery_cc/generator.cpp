// SPDX-License-Identifier: Apache-2.0
#include <tools/orrery_cc/generator.hpp>
#include <tools/orrery_cc/generator_class.hpp>

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
    if (f.name == "main") rename_main(f);
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

// It runs as the first task. In C its end without a return gives 0.
void generator::rename_main(const function_definition& f) {
  out_.replace(f.at, f.at + 4, "orrery_user_main_");
  out_.insert(f.end, " return 0; ");
  const bool none = f.parameters.empty();
  append_generated(f.end, format("static int orrery_main_(int argc, char **argv) {{ {}return orrery_user_main_({}); }} "
                                 "int main(int argc, char **argv) {{ return orrery_run(argc, argv, orrery_main_); }}",
                                 none ? "(void)argc; (void)argv; " : "", none ? "" : "argc, argv"));
}

string generate(const source& from, const program& found, string_view file, string_view old_standard) {
  return generator(from, found, file, old_standard).run();
}

}  // namespace orrery_cc
