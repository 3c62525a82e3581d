// SPDX-License-Identifier: Apache-2.0
#include <tools/orrery_cc/parser.hpp>
#include <tools/orrery_cc/parser_class.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace orrery_cc {

using std::string_view;

namespace {

// Words that a parenthesis belongs to, which is not a list of parameters.
constexpr std::array with_parenthesis{
    string_view("__attribute__"), string_view("__attribute"), string_view("__asm__"),
    string_view("asm"),           string_view("__asm"),       string_view("_Alignas"),
    string_view("alignas"),       string_view("__declspec"),  string_view("_Static_assert"),
    string_view("static_assert"), string_view("__typeof__"),  string_view("typeof"),
    string_view("__typeof"),      string_view("_Atomic"),     string_view("_BitInt"),
    string_view("typeof_unqual")};

}  // namespace

parser::parser(const source& from) : from_(from) {
  for (const token& t : from.tokens())
    if (t.kind != token_kind::directive) tokens_.push_back(t);
}

bool parser::takes_parenthesis() const {
  return is_name() && is("(", 1) && std::ranges::find(with_parenthesis, text()) != with_parenthesis.end();
}

program parser::run() {
  while (!at_end()) {
    const std::size_t first = at_;
    const std::size_t defined = found_.messages.size() + found_.tasks.size();
    external_declaration();
    if (found_.main_begin == program::nowhere && defined == found_.messages.size() + found_.tasks.size() &&
        std::any_of(tokens_.begin() + static_cast<std::ptrdiff_t>(first),
                    tokens_.begin() + static_cast<std::ptrdiff_t>(at_),
                    [&](const token& t) { return from_.text_of(t) == "main"; }))
      found_.main_begin = tokens_[first].begin;
  }
  return std::move(found_);
}

void parser::skip_group() {
  int depth = 0;
  for (; !at_end(); ++at_) {
    if (peek().kind != token_kind::other) continue;
    const char c = text()[0];
    if (c == '(' || c == '[' || c == '{') ++depth;
    if ((c == ')' || c == ']' || c == '}') && --depth == 0) {
      ++at_;
      return;
    }
  }
}

void parser::fail(const token& t, std::string_view what) const {
  throw source_error(describe(from_.where(t.begin), "error", what, t.end - t.begin));
}

void parser::external_declaration() {
  if (is_name(1) && is("{", 2)) {
    if (is("message")) return define_message();
    if (is("task")) return define_task();
  }
  refuse_attributes_of_definition();
  const std::size_t first = at_;
  std::optional<std::size_t> name;  // of a function
  std::vector<std::string> parameters;
  std::size_t parameters_begin = 0;
  std::size_t parameters_end = 0;
  bool declares_parameters = false;
  bool assigned = false;
  while (!at_end()) {
    if (is_name() && is("orrery_message_type")) found_.knows_runtime = true;
    if (is_name() && is("orrery_message_class")) found_.knows_thesis = true;
    if (takes_parenthesis()) {
      ++at_;
      skip_group();
    } else if (is("(")) {
      const bool in_parentheses = !name && is_name(1) && is(")", 2) && is("(", 3);  // int (main)(void)
      if (in_parentheses) at_ += 3;
      const bool of_function = in_parentheses || (!name && at_ > first && tokens_[at_ - 1].kind == token_kind::name);
      if (of_function) name = at_ - (in_parentheses ? 2 : 1);
      if (of_function) parameters_begin = peek().begin;
      const std::size_t begin = at_ + 1;
      skip_group();
      if (of_function) {
        parameters = parameters_in(begin, at_ - 1);
        parameters_end = at_;
        // `int sum(a, b) int a; int b; { ... }`
        declares_parameters = is_name() && !takes_parenthesis();
      }
    } else if (is("[")) {
      skip_group();
    } else if (is("{")) {
      const bool body = name && !assigned;
      skip_group();
      if (body) {
        function_definition f;
        f.name = from_.text_of(tokens_[*name]);
        f.begin = tokens_[first].begin;
        f.at = tokens_[*name].begin;
        f.parameters_begin = parameters_begin;
        f.parameters_end = declares_parameters ? 0 : tokens_[parameters_end - 1].end;
        f.end = tokens_[at_ - 1].begin;
        f.is_static = static_.contains(f.name) || is_static(first, *name);
        f.parameters = std::move(parameters);
        found_.functions.push_back(std::move(f));
        return;
      }
    } else if (is(";") && declares_parameters) {
      ++at_;
    } else if (is(";") || is("}")) {
      if (is(";") && name && is_static(first, *name)) static_.emplace(from_.text_of(tokens_[*name]));
      has_own_buffer_ |= is(";") && names_type("buffer", first, at_);
      has_own_strategy_ |= is(";") && names_type("strategy", first, at_);
      ++at_;
      take_type(first, name.has_value());
      return;
    } else {
      assigned |= is("=");
      ++at_;
    }
  }
}

bool parser::is_static(std::size_t first, std::size_t name) const {
  return std::any_of(tokens_.begin() + static_cast<std::ptrdiff_t>(first),
                     tokens_.begin() + static_cast<std::ptrdiff_t>(name),
                     [&](const token& t) { return from_.text_of(t) == "static"; });
}

// `typedef struct strategy {...} strategy, *strategies;`, `typedef int (*strategy)(int);`, but no name
// of a parameter.
bool parser::names_type(string_view name, std::size_t first, std::size_t end) const {
  const auto word = [&](std::size_t i) { return from_.text_of(tokens_[i]); };
  constexpr std::array before{string_view("struct"), string_view("union"), string_view("enum")};
  constexpr std::array behind{string_view(";"), string_view(","), string_view(")"),
                              string_view("("), string_view("["), string_view("__attribute__")};
  if (word(first) != "typedef") return false;
  for (std::size_t i = first + 1; i < end; ++i) {
    const bool of_declarator = word(i) == "(" && (word(i + 1) == "*" || word(i + 1) == "(");
    if ((word(i) == "{" || word(i) == "(" || word(i) == "[") && !of_declarator) {
      i = behind_group(i) - 1;
      continue;
    }
    if (word(i) == name && std::ranges::find(before, word(i - 1)) == before.end() &&
        std::ranges::find(behind, word(i + 1)) != behind.end())
      return true;
  }
  return false;
}

// `message __attribute__((packed)) M { ... };`, which would else be nothing that is known.
void parser::refuse_attributes_of_definition() {
  if ((!is("message") && !is("task")) || peek(1).kind != token_kind::name || !is("(", 2)) return;
  const std::size_t before = at_;
  ++at_;
  if (takes_parenthesis()) {
    ++at_;
    skip_group();
    if (is_name() && is("{", 1))
      fail(tokens_[before + 1], fmt::format("a {} has no attributes: leave them out, or give them to members of '{}'",
                                            from_.text_of(tokens_[before]), text()));
  }
  at_ = before;
}

// `struct pair { int a, b; };`, `typedef unsigned char byte;`, and the structure in
// `struct pair { int a, b; } both;`, but no variable and no function of such a type.
void parser::take_type(std::size_t first, bool of_function) {
  const auto word = [&](std::size_t i) { return from_.text_of(tokens_[i]); };
  if (word(at_ - 1) != ";") return;
  const auto take = [&](bool has_variables) {
    found_.types.push_back({tokens_[first].begin, tokens_[at_ - 1].end, has_variables});
  };
  std::size_t i = word(first) == "__extension__" ? first + 1 : first;
  if (word(i) == "typedef") return take(false);
  if (of_function) return;
  const bool begins_type = word(i) == "struct" || word(i) == "union" || word(i) == "enum";
  if (begins_type && at_ - i == 3) return take(false);
  bool of_structure = false;
  while (word(i) != "{" && word(i) != "=" && word(i) != ";") {
    of_structure |= word(i) == "struct" || word(i) == "union";
    i = begins_attribute(i) ? behind_attributes(i) : i + 1;
  }
  if (word(i) != "{") return;
  const bool is_all = behind_attributes(behind_group(i)) == at_ - 1;
  if (begins_type && is_all) return take(false);
  if (of_structure) take(true);
}

bool parser::begins_attribute(std::size_t i) const {
  const string_view t = from_.text_of(tokens_[i]);
  const string_view next = from_.text_of(tokens_[std::min(i + 1, tokens_.size() - 1)]);
  return ((t == "__attribute__" || t == "__attribute") && next == "(") || (t == "[" && next == "[");
}

std::size_t parser::behind_attributes(std::size_t i) const {
  while (begins_attribute(i)) i = behind_group(from_.text_of(tokens_[i]) == "[" ? i : i + 1);
  return i;
}

std::size_t parser::behind_group(std::size_t i) const {
  int depth = 0;
  for (; i + 1 < tokens_.size(); ++i) {
    const string_view t = from_.text_of(tokens_[i]);
    if (t == "(" || t == "[" || t == "{") ++depth;
    if ((t == ")" || t == "]" || t == "}") && --depth == 0) return i + 1;
  }
  return i;
}

// A task or message has one name, whatever qualifies it: `struct T *const this` is a T. Other types
// stay as they are.
std::string parser::type_of_parameter(const std::vector<string_view>& words) const {
  const auto joined = [](const std::vector<string_view>& all) {
    std::string type;
    const std::size_t count = all.size() > 1 && all.back() != "*" ? all.size() - 1 : all.size();
    for (std::size_t i = 0; i < count; ++i) type += (i == 0 ? "" : " ") + std::string(all[i]);
    return type;
  };
  std::vector<string_view> bare = words;
  std::erase_if(bare, [](string_view w) { return w == "const" || w == "volatile" || w == "register"; });
  std::string type = joined(bare);
  if (type.starts_with("struct ") && type.ends_with(" *")) type = type.substr(7, type.size() - 9);
  // `const struct T *` is another type than `T`.
  const auto star = std::ranges::find(words, string_view("*"));
  const bool of_constant = star != words.end() && std::any_of(words.begin(), star, [](string_view w) {
                             return w == "const" || w == "volatile";
                           });
  const bool known = names_.contains(type) || (found_.knows_thesis && type == "Message");
  return known && !of_constant ? type : joined(words);
}

std::vector<std::string> parser::parameters_in(std::size_t begin, std::size_t end) const {
  std::vector<std::string> all;
  int depth = 0;
  std::vector<std::string_view> words;
  const auto finish = [&] {
    if (words.empty() || (words.size() == 1 && words[0] == "void")) return;
    all.push_back(type_of_parameter(words));
    words.clear();
  };
  for (std::size_t i = begin; i < end; ++i) {
    const string_view t = from_.text_of(tokens_[i]);
    if (depth == 0 && begins_attribute(i)) {
      i = behind_group(t == "[" ? i : i + 1) - 1;
      continue;
    }
    if (t == "(" || t == "[") ++depth;
    if (t == ")" || t == "]") --depth;
    if (t == "," && depth == 0) {
      finish();
    } else {
      words.push_back(t);
    }
  }
  finish();
  return all;
}

program parse(const source& from) { return parser(from).run(); }

}  // namespace orrery_cc
