// SPDX-License-Identifier: Apache-2.0
#include <tools/orrery_cc/parser.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace orrery_cc {

namespace {

using std::string_view;

// Words that a parenthesis belongs to, which is not a list of parameters.
constexpr std::array with_parenthesis{
    string_view("__attribute__"), string_view("__attribute"), string_view("__asm__"),
    string_view("asm"),           string_view("__asm"),       string_view("_Alignas"),
    string_view("alignas"),       string_view("__declspec"),  string_view("_Static_assert"),
    string_view("static_assert"), string_view("__typeof__"),  string_view("typeof"),
    string_view("__typeof"),      string_view("_Atomic"),     string_view("_BitInt"),
    string_view("typeof_unqual")};

class parser {
 public:
  explicit parser(const source& from) : from_(from) {
    for (const token& t : from.tokens())
      if (t.kind != token_kind::directive) tokens_.push_back(t);
  }

  program run() {
    while (!at_end()) external_declaration();
    return std::move(found_);
  }

 private:
  // --- tokens --------------------------------------------------------------------------------------------------
  [[nodiscard]] const token& peek(std::size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  [[nodiscard]] string_view text(std::size_t ahead = 0) const { return from_.text_of(peek(ahead)); }
  [[nodiscard]] bool is(string_view what, std::size_t ahead = 0) const { return text(ahead) == what; }
  [[nodiscard]] bool is_name(std::size_t ahead = 0) const { return peek(ahead).kind == token_kind::name; }
  [[nodiscard]] bool at_end() const { return peek().kind == token_kind::end; }

  // Behind the bracket that closes the one here; at the end if there is none.
  void skip_group() {
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

  [[noreturn]] void fail(const token& t, std::string_view what) const {
    throw source_error(describe(from_.where(t.begin), "error", what, t.end - t.begin));
  }

  // --- file scope ----------------------------------------------------------------------------------------------
  void external_declaration() {
    if (is_name(1) && is("{", 2)) {
      if (is("message")) return define_message();
      if (is("task")) return define_task();
    }
    const std::size_t first = at_;
    std::optional<std::size_t> name;  // of a function
    std::vector<std::string> parameters;
    bool assigned = false;
    while (!at_end()) {
      if (is_name() && is("orrery_message_type")) found_.knows_runtime = true;
      if (is_name() && is("orrery_message_class")) found_.knows_thesis = true;
      if (is_name() && is("(", 1) && std::ranges::find(with_parenthesis, text()) != with_parenthesis.end()) {
        ++at_;
        skip_group();
      } else if (is("(")) {
        const bool of_function = !name && at_ > first && tokens_[at_ - 1].kind == token_kind::name;
        if (of_function) name = at_ - 1;
        const std::size_t begin = at_ + 1;
        skip_group();
        if (of_function) parameters = parameters_in(begin, at_ - 1);
      } else if (is("[")) {
        skip_group();
      } else if (is("{")) {
        const bool body = name && !assigned;
        skip_group();
        if (body) {
          function_definition f;
          f.name = from_.text_of(tokens_[*name]);
          f.at = tokens_[*name].begin;
          f.end = tokens_[at_ - 1].begin;
          for (std::size_t i = first; i < *name; ++i) f.is_static |= from_.text_of(tokens_[i]) == "static";
          f.parameters = std::move(parameters);
          found_.functions.push_back(std::move(f));
          return;
        }
        if (at_ == first + 1) return;  // a brace where a declaration should begin
      } else if (is(";") || is("}")) {
        has_own_buffer_ |= is(";") && at_ > first && from_.text_of(tokens_[at_ - 1]) == "buffer" &&
                           from_.text_of(tokens_[first]) == "typedef";
        ++at_;
        return;
      } else {
        assigned |= is("=");
        ++at_;
      }
    }
  }

  // The types of what stands between those tokens, with commas between them.
  std::vector<std::string> parameters_in(std::size_t begin, std::size_t end) const {
    std::vector<std::string> all;
    int depth = 0;
    std::vector<std::string_view> words;
    const auto finish = [&] {
      if (words.empty() || (words.size() == 1 && words[0] == "void")) return;
      std::string type;
      const std::size_t count = words.size() > 1 && words.back() != "*" ? words.size() - 1 : words.size();
      for (std::size_t i = 0; i < count; ++i) type += (i == 0 ? "" : " ") + std::string(words[i]);
      all.push_back(std::move(type));
      words.clear();
    };
    for (std::size_t i = begin; i < end; ++i) {
      const string_view t = from_.text_of(tokens_[i]);
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

  // --- messages and tasks --------------------------------------------------------------------------------------
  void begin_definition(std::string& name, std::size_t& begin, std::size_t& name_at, std::size_t& open) {
    begin = peek().begin;
    const token& t = peek(1);
    name = text(1);
    name_at = t.begin;
    open = peek(2).begin;
    if (!names_.insert(name).second)
      fail(t, fmt::format("'{}' is defined twice: give the second another name, or its header a #pragma once", name));
    at_ += 3;
  }
  std::size_t end_definition(string_view what, string_view name) {
    ++at_;  // the brace
    if (!is(";")) fail(peek(), fmt::format("a ';' is missing behind the {} '{}'", what, name));
    ++at_;
    return tokens_[at_ - 1].end;
  }

  void define_message() {
    message_definition m;
    begin_definition(m.name, m.begin, m.name_at, m.open);
    messages_.insert(m.name);
    while (!is("}")) declare_members(m.members, "message", m.name);
    for (const member& each : m.members) m.has_functions |= each.kind == member_kind::function;
    if (m.has_functions) {
      check_with_functions(m);
    } else {
      for (member& each : m.members) classify(each, m);
    }
    m.end = end_definition("message", m.name);
    found_.messages.push_back(std::move(m));
  }

  // What its functions write and copy is theirs to know.
  void check_with_functions(const message_definition& m) const {
    int pointers = 0;
    for (const member& each : m.members) {
      if (each.kind == member_kind::function) continue;
      pointers += each.pointers != 0 ? 1 : 0;
      if (pointers > 1 || each.pointers > 1)
        fail({token_kind::name, each.at, each.at + each.name.size()},
             fmt::format(
                 "'{}' is one pointer too many: a message with functions has one, to what its writeAt puts behind the "
                 "structure; leave out the functions, and count the elements: {} {}[count];",
                 each.name, each.type, each.name));
    }
  }

  void define_task() {
    task_definition t;
    begin_definition(t.name, t.begin, t.name_at, t.open);
    while (!is("}")) {
      if (is("tag") && is_name(1) && (is("(", 2) || is("=", 2) || is(";", 2))) {
        declare_tag(t);
      } else if (is("strategy") && is_name(1) && is(";", 2) && text(1).starts_with("message_")) {
        declare_strategy(t);
      } else {
        declare_members(t.state, "task", t.name);
      }
    }
    t.end = end_definition("task", t.name);
    found_.tasks.push_back(std::move(t));
  }

  void declare_strategy(task_definition& of) {
    constexpr std::pair<string_view, string_view> all[] = {{"message_notify", "ORRERY_NOTIFY"},
                                                           {"message_wait", "ORRERY_YIELD"},
                                                           {"message_immediate", "ORRERY_IMMEDIATE"}};
    const auto* const found = std::ranges::find(all, text(1), &std::pair<string_view, string_view>::first);
    if (found == std::end(all))
      fail(peek(1),
           fmt::format("'{}' is no strategy: write message_notify, message_wait or message_immediate", text(1)));
    if (!of.strategy.empty()) fail(peek(), fmt::format("task '{}' has two strategies", of.name));
    of.strategy = found->second;
    of.strategy_begin = peek().begin;
    of.strategy_end = peek(2).end;
    at_ += 3;
  }

  void declare_tag(task_definition& of) {
    tag t;
    t.begin = peek().begin;
    t.name = text(1);
    t.at = peek(1).begin;
    for (const tag& other : of.tags)
      if (other.name == t.name) fail(peek(1), fmt::format("task '{}' has two tags '{}'", of.name, t.name));
    at_ += 2;
    t.typed = is("(");
    if (is("(")) {
      ++at_;
      if (is_name() && !is("void")) {
        t.message = text();
        t.message_at = peek().begin;
        if (!messages_.contains(t.message))
          fail(peek(), fmt::format("'{}' is no message that is defined before: a tag carries a message", t.message));
      }
      if (!is(")")) ++at_;
      if (!is(")"))
        fail(peek(), fmt::format("tag '{}' carries one message, or none: write tag {}(Message);", t.name, t.name));
      ++at_;
    }
    if (is("=")) {
      const std::size_t begin = peek(1).begin;
      while (!at_end() && !is(";") && !is("}")) ++at_;
      t.value = from_.text_of(begin, tokens_[at_ - 1].end);
    }
    if (!is(";")) fail(peek(), fmt::format("a ';' is missing behind the tag '{}'", t.name));
    ++at_;
    t.end = tokens_[at_ - 1].end;
    of.tags.push_back(std::move(t));
  }

  // One declaration: `unsigned int a = 1, *b;`
  void declare_members(std::vector<member>& all, string_view what, string_view name) {
    if (at_end()) fail(peek(), fmt::format("the {} '{}' has no end: a '}}' is missing", what, name));
    const std::size_t first = at_;
    while (is_name() || is("{")) {
      if (is("{")) {
        skip_group();
      } else if (is("(", 1) && std::ranges::find(with_parenthesis, text()) != with_parenthesis.end()) {
        ++at_;
        skip_group();
      } else {
        ++at_;
      }
    }
    if (!is("*")) {
      // Of the names the last one is the first member's.
      if (at_ - first < 2 || tokens_[at_ - 1].kind != token_kind::name)
        fail(tokens_[first == at_ ? at_ : at_ - 1],
             fmt::format("in the {} '{}' a member with its type is expected here", what, name));
      --at_;
    }
    const std::size_t type_begin = tokens_[first].begin;
    const std::size_t type_end = tokens_[at_ - 1].end;
    for (;;) {
      member m;
      m.type = from_.text_of(type_begin, type_end);
      m.type_begin = type_begin;
      m.type_end = type_end;
      m.names_buffer = m.type == "buffer" && !has_own_buffer_;
      declarator(m, what, name);
      all.push_back(std::move(m));
      if (!is(",")) break;
      ++at_;
    }
    if (!is(";")) fail(tokens_[at_ - 1], fmt::format("a ';' is missing behind the member '{}'", all.back().name));
    ++at_;
  }

  void declarator(member& m, string_view what, string_view name) {
    m.declarator_begin = peek().begin;
    int stars = 0;
    for (; is("*") || is("const") || is("restrict") || is("volatile"); ++at_) stars += is("*") ? 1 : 0;
    if (is("("))
      fail(peek(),
           fmt::format("{} '{}' has a pointer to a function or to an array here, which is good in one program only",
                       what, name));
    if (!is_name()) fail(peek(), fmt::format("in the {} '{}' the name of a member is expected here", what, name));
    m.name = text();
    m.at = peek().begin;
    ++at_;
    m.pointers = stars;
    if (is("(")) {
      if (what != "message")
        fail(tokens_[at_ - 1], fmt::format("'{}' is a function; a {} has data only", m.name, what));
      m.kind = member_kind::function;
      m.stars = std::string(static_cast<std::size_t>(stars), '*');
      const std::size_t begin = peek().end;
      skip_group();
      m.declarator_end = tokens_[at_ - 1].end;
      m.parameters = from_.text_of(begin, m.declarator_end - 1);
      return;
    }
    int dimensions = 0;
    for (; is("["); ++dimensions) {
      if (is_name(1) && is("]", 2)) m.count = text(1);
      if (is("]", 1)) m.count = "]";
      skip_group();
    }
    if (dimensions != 1 && m.count != "]") m.count.clear();
    m.declarator_end = tokens_[at_ - 1].end;
    if (stars == 1) m.kind = dimensions == 0 ? member_kind::string : member_kind::strings;
    if (stars == 0 && dimensions != 0) m.kind = member_kind::array;
    if (stars > 1) m.kind = member_kind::messages;  // classify() refuses them in messages
    while (!at_end() && !is(",") && !is(";") && !is("}") && !is("=")) ++at_;  // a bit-field
    if (!is("=")) return;
    m.initial_begin = peek().begin;
    ++at_;
    m.initial_at = peek().begin;
    int depth = 0;
    for (; !at_end(); ++at_) {
      if (depth == 0 && (is(",") || is(";"))) break;
      if (is("(") || is("[") || is("{")) ++depth;
      if (is(")") || is("]") || is("}")) --depth;
      if (depth < 0) break;
    }
    m.initial = from_.text_of(m.initial_at, tokens_[at_ - 1].end);
  }

  // What a member of a message is; declarator() has counted its stars and dimensions.
  void classify(member& m, const message_definition& in) const {
    const token name{token_kind::name, m.at, m.at + m.name.size()};
    const bool of_message = messages_.contains(m.type);
    const bool counted = std::ranges::any_of(in.members, [&](const member& o) { return o.name == m.count; });
    if (m.initial_begin != 0)
      fail(name, fmt::format("'{}' has an initial value, but messages have none: set it where you send", m.name));
    if (m.count == "]")
      fail(name, fmt::format("the array '{}' has no length: count its elements in a member, and write {}[count]",
                             m.name, m.name));
    if (is_buffer(m.type)) {
      if (m.kind != member_kind::plain && !(m.kind == member_kind::array && counted))
        fail(name,
             fmt::format(
                 "'{}' is to be one buffer, or buffers that a member of '{}' counts: int count; buffer {}[count];",
                 m.name, in.name, m.name));
      m.kind = m.kind == member_kind::plain ? member_kind::buffer : member_kind::buffers;
      return;
    }
    switch (m.kind) {
      case member_kind::plain:
        if (of_message) m.kind = member_kind::message;
        return;
      case member_kind::array:
        if (!counted && of_message)
          fail(name,
               fmt::format("the array '{}' of messages is to be counted by a member of '{}': int count; {} {}[count];",
                           m.name, in.name, m.type, m.name));
        m.kind = !counted ? member_kind::plain : of_message ? member_kind::messages : member_kind::array;
        return;
      case member_kind::string:
      case member_kind::strings: {
        std::string type = m.type;
        for (const string_view word : {"const ", " const"})
          if (const auto i = type.find(word); i != std::string::npos) type.erase(i, word.size());
        if (type == "char" && (m.kind == member_kind::string || counted)) return;
        break;
      }
      default:
        break;
    }
    fail(name,
         fmt::format("'{}' is a pointer, and a message cannot know to how much: count its elements in a member, and "
                     "write {} {}[count];",
                     m.name, m.type, m.name));
  }

  // `buffer` is the language's only where the program has no type of that name.
  [[nodiscard]] bool is_buffer(string_view type) const {
    return type == "orrery_buffer" || (type == "buffer" && !has_own_buffer_);
  }

  const source& from_;
  std::vector<token> tokens_;
  bool has_own_buffer_ = false;
  std::size_t at_ = 0;
  program found_;
  std::set<std::string, std::less<>> names_;
  std::set<std::string, std::less<>> messages_;
};

}  // namespace

program parse(const source& from) { return parser(from).run(); }

}  // namespace orrery_cc
