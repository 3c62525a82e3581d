// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tools/orrery_cc/message_ids.hpp>
#include <tools/orrery_cc/program.hpp>
#include <tools/orrery_cc/source.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace orrery_cc {

/// True of the runtime's own headers.
[[nodiscard]] bool is_of_runtime(std::string_view file);
/// True of members of which another one counts the elements.
[[nodiscard]] bool is_array(member_kind k);

/// Writes the header for C++.
///
/// Problem: see generate_cpp_header(). What the header has in all, and of tasks, is in cpp_header.cpp, what C++ cannot have in cpp_header_checks.cpp, how text of C
/// becomes that of C++ in cpp_header_text.cpp, the classes of messages in cpp_header_messages.cpp, and what converts them in cpp_header_conversions.cpp.
///
/// Used once, by generate_cpp_header(), which owns it.
class cpp_header {
 public:
  cpp_header(const source& from, const program& found, std::string_view file)
      : from_(from), found_(found), file_(file), ids_(from, found) {}
  /// Throws source_error.
  [[nodiscard]] std::string run(std::string_view in);

 private:
  void error(std::size_t at, std::string_view name, std::string_view what);
  [[nodiscard]] std::string name_of_file() const;
  [[nodiscard]] std::string in_cpp(const task_definition& t) const;

  // --- what C++ cannot have ---
  void check(const message_definition& m);
  void check(const task_definition& t);
  void check_name(std::size_t at, const std::string& name);

  // --- text of C ---
  // The tokens there, as C++ spells them; `copied`: without const and volatile, which a copy cannot have.
  [[nodiscard]] std::string in_cpp(std::size_t begin, std::size_t end, bool copied = false) const;
  [[nodiscard]] std::string type_of(const member& m) const;
  // That of an element that a vector can have.
  [[nodiscard]] std::string element_of(const member& m) const;
  // What the file includes of the system: the header needs it, too.
  [[nodiscard]] std::string includes() const;

  // --- messages ---
  [[nodiscard]] static bool counts(const message_definition& m, const member& each);
  [[nodiscard]] bool has_buffers(const message_definition& m) const;
  [[nodiscard]] std::string plain(const member& each) const;
  [[nodiscard]] std::string initialized(const member& each) const;
  [[nodiscard]] std::string c_form(const message_definition& m) const;
  [[nodiscard]] std::string in_cpp(const message_definition& m) const;
  // Constants, which may name each other.
  [[nodiscard]] std::string type_table(const message_definition& m) const;
  // As the table of task.h has a member that points to something; empty: it does not.
  [[nodiscard]] std::string row_of(const message_definition& m, const member& each) const;

  // --- conversions ---
  [[nodiscard]] std::string conversions(const message_definition& m) const;
  [[nodiscard]] std::string copy_of(const member& each) const;
  [[nodiscard]] std::string writes(const message_definition& m) const;
  [[nodiscard]] std::string reads(const message_definition& m) const;
  // The buffers have gone with the message.
  [[nodiscard]] std::string sends(const message_definition& m) const;

  const source& from_;
  const program& found_;
  std::string_view file_;
  message_ids ids_;
  std::string errors_;
};

}  // namespace orrery_cc
