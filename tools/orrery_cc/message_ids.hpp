// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tools/orrery_cc/program.hpp>
#include <tools/orrery_cc/source.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace orrery_cc {

/// The numbers that tell programs whether they mean the same messages.
///
/// Problem: programs that meet, or an old and a new build of one, must not take each other's bytes
/// for something else. So the number of a message is made of its name and members, of the messages
/// among these, and of the structures, unions and names of types of the user's files that they are
/// made of; whatever stands between the words, and wherever the files are. Types of the system are
/// known by their names, and enumerations may grow. What the words do not say is in the size, which the compiler knows.
///
/// Owned by what generates code, with the same source and program.
class message_ids {
 public:
  message_ids(const source& from, const program& found);
  /// An expression: the number of a message whose structure is `type`. The same in C and C++.
  [[nodiscard]] std::string expression(const message_definition& m, std::string_view type) const;

 private:
  using names = std::set<std::string, std::less<>>;
  void find_names_of(const type_declaration& t);
  // Appends the words there, and then those of what they name, each name once.
  void add_words(std::string& to, std::size_t begin, std::size_t end, names& known) const;
  void add_definition(std::string& to, const std::string& name, names& known) const;
  [[nodiscard]] std::size_t first_token(std::size_t at) const;
  [[nodiscard]] std::string_view text(std::size_t token) const;  // empty behind the last one
  // Behind the bracket that closes the one at that token, and behind the attributes that begin there.
  [[nodiscard]] std::size_t behind_group(std::size_t token) const;
  [[nodiscard]] std::size_t behind_attributes(std::size_t token) const;

  const source& from_;
  const program& found_;
  std::map<std::string, type_declaration, std::less<>> types_;  // by "struct x", "union x", "x"
};

}  // namespace orrery_cc
