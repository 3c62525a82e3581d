// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tools/orrery_cc/program.hpp>
#include <tools/orrery_cc/source.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace orrery_cc {

/// The words of a type without `const` and `volatile`, which a copy need not have.
[[nodiscard]] std::string unqualified(const std::string& type);

/// Finds messages, tasks and functions in the tokens of a source.
///
/// Problem: see parse(). It goes through the tokens once, from the first to the last; each method begins at the token where its construct does, and leaves the
/// next one. What stands at file scope is in parser.cpp, definitions of messages and tasks in parser_definitions.cpp, their members in parser_members.cpp.
///
/// Used once, by parse(), which owns it.
class parser {
 public:
  explicit parser(const source& from);
  /// Throws source_error.
  [[nodiscard]] program run();

 private:
  // --- tokens ---
  [[nodiscard]] const token& peek(std::size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  [[nodiscard]] std::string_view text(std::size_t ahead = 0) const { return from_.text_of(peek(ahead)); }
  [[nodiscard]] bool is(std::string_view what, std::size_t ahead = 0) const { return text(ahead) == what; }
  [[nodiscard]] bool is_name(std::size_t ahead = 0) const { return peek(ahead).kind == token_kind::name; }
  [[nodiscard]] bool at_end() const { return peek().kind == token_kind::end; }
  // A word that a parenthesis belongs to, which is not a list of parameters: __attribute__((...)).
  [[nodiscard]] bool takes_parenthesis() const;
  // Behind the bracket that closes the one here; at the end if there is none.
  void skip_group();
  [[noreturn]] void fail(const token& t, std::string_view what) const;

  // --- file scope ---
  void external_declaration();
  void refuse_attributes_of_definition();
  // Takes what has ended with the token before this one, if it declares a type.
  void take_type(std::size_t first, bool of_function);
  // The function whose declaration begins with the token `first` and has that name.
  [[nodiscard]] bool is_static(std::size_t first, std::size_t name) const;
  // The types of what stands between those tokens, with commas between them.
  [[nodiscard]] std::vector<std::string> parameters_in(std::size_t begin, std::size_t end) const;
  [[nodiscard]] std::string type_of_parameter(const std::vector<std::string_view>& words) const;
  // `__attribute__((...))` or `[[...]]`.
  [[nodiscard]] bool begins_attribute(std::size_t i) const;
  // Behind the attributes that begin there; the same token if there are none.
  [[nodiscard]] std::size_t behind_attributes(std::size_t i) const;
  // Behind the bracket that closes the one at that token.
  [[nodiscard]] std::size_t behind_group(std::size_t i) const;

  // --- messages and tasks ---
  void begin_definition(std::string& name, std::size_t& begin, std::size_t& name_at, std::size_t& open);
  std::size_t end_definition(std::string_view what, std::string_view name);
  void define_message();
  // What its functions write and copy is theirs to know.
  void check_with_functions(message_definition& m) const;
  void check_with_functions(const member& each, const message_definition& m) const;
  void define_task();
  void declare_strategy(task_definition& of);
  void declare_stack(task_definition& of);
  // Behind a `=`: the expression up to the semicolon, and where it begins.
  [[nodiscard]] std::string value_up_to_semicolon(std::size_t& at);
  void declare_tag(task_definition& of);

  // --- members ---
  // One declaration: `unsigned int a = 1, *b;`
  void declare_members(std::vector<member>& all, std::string_view what, std::string_view name);
  // The words before the first declarator. Behind the attributes that follow them; at_ is before these.
  std::size_t specifiers();
  void skip_assertion();
  // The brace of a structure or union between those tokens; `end` if there is none.
  [[nodiscard]] std::size_t brace_of_group(std::size_t first, std::size_t end, bool with_tag) const;
  // `lacks` says in errors why nobody would look for their pointers.
  [[nodiscard]] std::vector<member> members_of_group(std::size_t brace, std::string_view lacks, std::string_view name);
  [[nodiscard]] std::size_t behind_enumeration() const;
  [[noreturn]] void fail_for_parentheses(std::string_view what, std::string_view name) const;
  void skip_width(member& m);
  void declarator(member& m, std::string_view what, std::string_view name);
  [[nodiscard]] bool may_be_nested(std::string_view what) const;
  void nested_declarator(member& m);
  // What stands in the brackets of an array.
  void lengths(member& m);
  void initial_value(member& m);
  // What a member of a message is; declarator() has counted its stars and dimensions.
  void classify(member& m, const message_definition& in) const;
  [[nodiscard]] bool is_counted(const member& m, const message_definition& in) const;
  [[nodiscard]] bool stands_in_a_group(std::string_view name, const message_definition& in) const;
  void check_value(const member& m, bool beside_functions = false) const;
  [[noreturn]] void fail_for_pointer(const member& m, const std::string& type) const;
  [[nodiscard]] const message_definition* message_named(std::string_view name) const;
  // The declaration between those tokens gives a type that name.
  [[nodiscard]] bool names_type(std::string_view name, std::size_t first, std::size_t end) const;
  // The name stands somewhere before, so that it may be a constant.
  [[nodiscard]] bool is_known_before(std::string_view name, std::size_t offset) const;
  // `buffer` is the language's only where the program has no type of that name.
  [[nodiscard]] bool is_buffer(std::string_view type) const;

  const source& from_;
  std::vector<token> tokens_;
  bool has_own_buffer_ = false;
  bool has_own_strategy_ = false;  // the program has a type of that name
  std::size_t at_ = 0;
  program found_;
  std::set<std::string, std::less<>> names_;
  std::set<std::string, std::less<>> messages_;
  std::set<std::string, std::less<>> static_;  // functions that are declared so
};

}  // namespace orrery_cc
