// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// What the parser finds at file scope. Positions are offsets into the source's text.
namespace orrery_cc {

/// What a member of a message is, besides plain data.
enum class member_kind : std::uint8_t { plain, string, array, strings, message, messages, buffer, buffers, function };

struct member {
  member_kind kind = member_kind::plain;
  std::string name;  ///< empty: `int : 3;`, or a structure or union without a name
  std::string type;  ///< the specifiers, as they stand there
  std::string stars;  ///< of a function's result
  std::string parameters;  ///< of a function, as they stand there
  int pointers = 0;  ///< how many stars
  bool names_buffer = false;  ///< its type is the language's `buffer`
  std::string count;  ///< the member that counts the elements
  std::string nested_count;  ///< instead of it: a member of a member, `a.b`
  int dimensions = 0;  ///< of an array
  std::vector<std::string> lengths;  ///< the names between its brackets
  std::vector<member> group;  ///< of a structure or union without a name in a message: its members
  bool has_width = false;  ///< it is a bit-field
  std::string initial;  ///< the initial value; empty: none
  std::size_t at = 0;  ///< of the name
  std::size_t declarator_begin = 0;  ///< behind the specifiers
  std::size_t declarator_end = 0;
  std::size_t width_end = 0;  ///< behind the width of a bit-field, if there is one
  std::size_t type_begin = 0;
  std::size_t type_end = 0;
  std::size_t initial_begin = 0;  ///< of the `=`
  std::size_t initial_at = 0;  ///< of the value
};

struct tag {
  std::string name;
  std::string message;  ///< the type that it carries; empty: nothing
  bool typed = true;  ///< false as in `tag stop = 0;`: what its handler takes
  std::string value;  ///< empty: one more than the last
  std::size_t value_at = 0;
  std::size_t at = 0;
  std::size_t message_at = 0;
  std::size_t begin = 0;  ///< the whole declaration
  std::size_t end = 0;
};

struct message_definition {
  std::string name;
  bool has_functions = false;  ///< the thesis' form: it has a head, and its own functions write and copy it
  std::vector<member> members;
  std::size_t begin = 0;  ///< of the word `message`
  std::size_t name_at = 0;
  std::size_t open = 0;  ///< behind the brace
  std::size_t end = 0;  ///< behind the semicolon
};

struct task_definition {
  std::string name;
  std::vector<tag> tags;
  std::vector<member> state;
  std::string strategy;  ///< the runtime's name of it; empty: the default
  std::size_t strategy_begin = 0;  ///< its declaration
  std::size_t strategy_end = 0;
  std::string stack;  ///< the bytes that its stack is to have, an expression; empty: the usual size
  std::size_t stack_at = 0;  ///< of the expression
  std::size_t stack_begin = 0;  ///< its declaration
  std::size_t stack_end = 0;
  std::size_t begin = 0;
  std::size_t name_at = 0;
  std::size_t open = 0;  ///< behind the brace
  std::size_t end = 0;
};

/// A function with a body.
struct function_definition {
  std::string name;
  std::size_t begin = 0;
  std::size_t at = 0;  ///< of the name
  std::size_t parameters_begin = 0;  ///< of their parenthesis
  std::size_t parameters_end = 0;  ///< behind their parenthesis; 0 if their types stand behind it
  std::size_t end = 0;  ///< of the brace that ends it
  bool is_static = false;
  std::vector<std::string> parameters;  ///< the type of each, without its name: "Reading"
};

/// A declaration of a structure, union, enumeration or name of a type.
struct type_declaration {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool has_variables = false;  ///< `struct pair { int a, b; } both;`
};

struct program {
  std::vector<message_definition> messages;
  std::vector<task_definition> tasks;
  std::vector<function_definition> functions;
  std::vector<type_declaration> types;
  static constexpr std::size_t nowhere = ~std::size_t{0};
  std::size_t main_begin = nowhere;  ///< of the first declaration in which `main` stands
  bool knows_runtime = false;  ///< <orrery/task.h> was included
  bool knows_thesis = false;  ///< <orrery/thesis.h> was

  [[nodiscard]] bool is_plain_c() const noexcept { return messages.empty() && tasks.empty(); }
};

}  // namespace orrery_cc
