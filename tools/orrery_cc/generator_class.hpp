// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tools/orrery_cc/message_ids.hpp>
#include <tools/orrery_cc/program.hpp>
#include <tools/orrery_cc/rewriter.hpp>
#include <tools/orrery_cc/source.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orrery_cc {

/// Makes C of a source and of what the parser has found in it.
///
/// Problem: all but the definitions is to stay as it is, byte for byte, and what is generated has to stand where the user's lines are, so that errors point there.
/// So definitions are edited in place (rewriter), prototypes and tables follow them on a line of their own, and functions follow the whole file. Each kind
/// of definition has a source of its own: generator_messages.cpp, generator_thesis.cpp (messages with functions), generator_tasks.cpp.
///
/// Used once, by generate(), which owns it.
class generator {
 public:
  generator(const source& from, const program& found, std::string_view file, std::string_view old_standard)
      : from_(from), found_(found), file_(file), old_standard_(old_standard), ids_(from, found), out_(from) {}
  /// Throws source_error with all that is wrong.
  [[nodiscard]] std::string run();

 private:
  void error(std::size_t at, std::string_view name, std::string_view what);
  [[nodiscard]] std::pair<std::size_t, std::string_view> first_definition() const;
  // Lines for the end of the file, which stand where `at` does.
  void append_generated(std::size_t at, const std::string& what);
  void wrap_main(const function_definition& f);
  [[nodiscard]] std::string result_of(const function_definition& f) const;

  // --- assertions in the user's lines ---
  [[nodiscard]] std::string assertion(std::size_t at, const std::string& name, const std::string& condition,
                                      const std::string& text) const;
  // That the C compiler finds what the parser cannot see: pointers behind names of types, sizes, alignments; equal numbers of tags.
  [[nodiscard]] std::string checks_of(const message_definition& m) const;
  // That of members, also of those in a structure or union.
  [[nodiscard]] std::string checks_of(const message_definition& m, const std::vector<member>& members,
                                      const std::string& path) const;
  [[nodiscard]] std::string check_of_count(const message_definition& m, const member& array) const;
  std::string checks_of(const task_definition& t);

  // --- messages ---
  void translate(const message_definition& m);
  // `buffer` is a type of the runtime. Members of one declaration have it together.
  void name_buffers(const std::vector<member>& members);
  // The row of the table for a member that points to something; and what stands for it in the structure.
  std::string field_of(const message_definition& m, const member& each);

  // --- messages with functions: the thesis' form ---
  [[nodiscard]] const message_definition* with_functions(std::string_view name) const;
  // A function whose first parameter is the message.
  [[nodiscard]] const function_definition* find(const message_definition& m, std::string_view name) const;
  static std::string parameters_of(const message_definition& m, const member& function);
  void translate_with_functions(const message_definition& m);
  // So that the compiler compares the definitions with what the message says of them.
  std::string prototypes_of(const message_definition& m) const;
  std::string implementation_of(const message_definition& m);

  // --- tasks ---
  // A function whose first parameter is the task.
  [[nodiscard]] const function_definition* find(const task_definition& t, std::string_view prefixed,
                                                std::string_view bare) const;
  [[nodiscard]] const function_definition* handler_of(const task_definition& t, const tag& g) const;
  // What its tag carries, or its handler takes.
  [[nodiscard]] std::string message_of(const tag& g, const function_definition* handler) const;
  // The one that stands for all messages with functions.
  [[nodiscard]] bool is_base_of_messages(std::string_view name) const;
  // ", .n = 7" for each member that has an initial value, on the line where that stands.
  [[nodiscard]] std::string initial_values_of(const std::vector<member>& members) const;
  void translate(const task_definition& t);
  void give_length(const member& each);
  // What every file has that includes the definition.
  std::string interface_of(const task_definition& t);
  void require_functions(const task_definition& t, const function_definition* start, bool own_receive);
  static std::string prototype(const function_definition& f, const std::string& parameters);
  std::string prototypes_of(const task_definition& t, const function_definition* start,
                            const function_definition* receive, bool bare) const;
  std::string implementation_of(const task_definition& t, const function_definition* start,
                                const function_definition* receive, bool bare) const;
  std::string receive_loop_of(const task_definition& t, bool bare) const;

  const source& from_;
  const program& found_;
  std::string_view file_;
  std::string_view old_standard_;
  message_ids ids_;
  rewriter out_;
  std::string at_end_;
  std::string errors_;
  std::map<std::string, std::string> untyped_;  // tags without a type, and the first task of each
};

}  // namespace orrery_cc
