// SPDX-License-Identifier: Apache-2.0
#include <tools/orrery_cc/cpp_header.hpp>

#include <tools/orrery_cc/cpp_header_class.hpp>
#include <tools/orrery_cc/words.hpp>

#include <cctype>
#include <filesystem>

#include <fmt/format.h>

namespace orrery_cc {

using fmt::format;
using std::string;
using std::string_view;

bool is_of_runtime(string_view file) {
  return file.ends_with("orrery/task/task.h") || file.ends_with("orrery/task/thesis.h");
}

bool is_array(member_kind k) {
  return k == member_kind::array || k == member_kind::strings || k == member_kind::messages ||
         k == member_kind::buffers;
}

string cpp_header::run(string_view in) {
  const string space = in.empty() ? name_of_file() : string(in);
  for (const message_definition& m : found_.messages) check(m);
  for (const task_definition& t : found_.tasks) check(t);
  if (!errors_.empty()) throw source_error(errors_);
  string text =
      format("// Made by orrery-cc of {}; changes are lost.\n#pragma once\n\n#include <orrery/task/tasks.hpp>\n\n",
             std::filesystem::path(file_).filename().string());
  text +=
      "#include <cstddef>\n#include <cstdint>\n#include <cstring>\n#include <memory>\n#include <memory_resource>\n#include <optional>\n#include <string>\n#include <type_traits>\n#include <vector>\n\n";
  text += includes();
  text += format("\nnamespace {} {{\n\n", space);
  for (const type_declaration& t : found_.types)
    if (const location at = from_.where(t.begin); at.flags.empty() && !is_of_runtime(at.file) && !t.has_variables)
      text += in_cpp(t.begin, t.end) + "\n";
  for (const message_definition& m : found_.messages) text += c_form(m) + in_cpp(m) + conversions(m);
  for (const task_definition& t : found_.tasks) text += in_cpp(t);
  return text + format("\n}}  // namespace {}\n", space);
}

void cpp_header::error(std::size_t at, string_view name, string_view what) {
  errors_ += describe(from_.where(at), "error", what, name.size());
}
string cpp_header::name_of_file() const {
  string name = std::filesystem::path(file_).stem().string();
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  if (std::isdigit(static_cast<unsigned char>(name[0])) != 0) name.insert(name.begin(), '_');
  return is_word_of_c(name) || is_word_of_cpp(name) ? name + "_" : name;
}

string cpp_header::in_cpp(const task_definition& t) const {
  string numbers;
  string tags;
  string handlers;
  string cases;
  for (const tag& g : t.tags) {
    numbers +=
        format("{}{}_{}{}{}", numbers.empty() ? "" : ", ", t.name, g.name, g.value.empty() ? "" : " = ", g.value);
    tags += format("  static constexpr orrery::tasks::tag<{0}> {1}{{static_cast<std::uint64_t>({2}_{1})}};\n",
                   g.message.empty() ? "void" : g.message, g.name, t.name);
    handlers +=
        format("    virtual void handle_{}({}) = 0;\n", g.name, g.message.empty() ? "" : g.message + " message");
    cases += format("        case static_cast<std::uint64_t>({}_{}): {}return handle_{}({});\n", t.name, g.name,
                    g.message.empty() ? "m.expect_none(); " : "", g.name,
                    g.message.empty() ? "" : format("m.open<{}>()", g.message));
  }
  string text = numbers.empty() ? "" : format("\nenum {{ {} }};\n", numbers);
  text += format(
      "extern \"C\" orrery_status {0}_create_at(orrery_place where, orrery_task* task);\n"
      "struct {0} {{\n{1}"
      "  /// Creates the task of C, which the program must link. As orrery_create.\n"
      "  static orrery_status create(orrery_task& task, orrery_place where = orrery_anywhere()) {{ return {0}_create_at(where, &task); }}\n"
      "  /// Receives in C++ what is sent to such a task.\n"
      "  class receiver : public orrery::tasks::receiver {{\n   public:\n{2}"
      "    void on_message(orrery::tasks::mail m) override {{\n"
      "      switch (m.tag()) {{\n{3}"
      "        default: orrery::tasks::refuse(m, \"{0}\");\n      }}\n    }}\n  }};\n}};\n",
      t.name, tags, handlers, cases);
  return text;
}

string generate_cpp_header(const source& from, const program& found, string_view file, string_view in) {
  return cpp_header(from, found, file).run(in);
}

}  // namespace orrery_cc
