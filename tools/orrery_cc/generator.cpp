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
  constexpr string_view name = "orrery_user_main_";
  rename("main", name);
  if (f.parameters_end != 0 && !f.is_static) {  // so that no warning asks for it
    const string parameters = f.parameters.empty() ? "(void)" : string(from_.text_of(f.at + 4, f.parameters_end));
    out_.insert_generated(f.begin, format("{}{}{};", from_.text_of(f.begin, f.at), name, parameters));
  }
  out_.insert(f.end, " return 0; ");
  constexpr std::array<string_view, 4> arguments{"", "argc", "argc, argv", "argc, argv, environ"};
  const std::size_t count = std::min(f.parameters.size(), arguments.size() - 1);
  append_generated(f.end, format("static int orrery_main_(int argc, char **argv) {{ {}(void)argc; (void)argv; "
                                 "return {}({}); }} "
                                 "int main(int argc, char **argv) {{ return orrery_run(argc, argv, orrery_main_); }}",
                                 count == 3 ? "extern char **environ; " : "", name, arguments[count]));
}

// Wherever it stands, as it may be called, and its address taken; but not in messages and tasks, of whose members the generated code knows the names.
void generator::rename(string_view name, string_view to) {
  const auto in = [](const auto& all, std::size_t at) {
    return std::ranges::any_of(all, [&](const auto& d) { return d.begin <= at && at < d.end; });
  };
  const auto has_member = [&](const std::vector<member>& all) {
    return std::ranges::find(all, name, &member::name) != all.end();
  };
  const bool is_member =
      std::ranges::any_of(found_.messages, [&](const message_definition& m) { return has_member(m.members); }) ||
      std::ranges::any_of(found_.tasks, [&](const task_definition& t) { return has_member(t.state); });
  string_view before;
  for (const token& t : from_.tokens()) {
    const string_view text = from_.text_of(t);
    if (t.kind == token_kind::name && text == name && !in(found_.messages, t.begin) && !in(found_.tasks, t.begin) &&
        !(is_member && (before == "." || before == "->" || before == ">")))
      out_.replace(t.begin, t.end, string(to));
    before = text;
  }
}

string generate(const source& from, const program& found, string_view file, string_view old_standard) {
  return generator(from, found, file, old_standard).run();
}

}  // namespace orrery_cc
