// SPDX-License-Identifier: Apache-2.0
#include <tools/orrery_cc/message_ids.hpp>

#include <tools/orrery_cc/cpp_header_class.hpp>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <xxhash.h>

namespace orrery_cc {

using std::string;
using std::string_view;

namespace {

// Words that are macros in some versions of C, and words in others.
string_view as_one_word(string_view word) { return word == "bool" ? "_Bool" : word == "alignas" ? "_Alignas" : word; }
// A name before that is one of a member or of a number, not of a type.
bool is_behind_declarator(string_view w) {
  return w == ";" || w == "," || w == "[" || w == "]" || w == ":" || w == "=";
}
bool opens(string_view w) { return w == "{" || w == "(" || w == "["; }
bool closes(string_view w) { return w == "}" || w == ")" || w == "]"; }

string folder_of(const string& file) { return file.substr(0, std::min(file.rfind('/'), file.size())); }
bool is_below(const std::set<string>& folders, const string& file) {
  return std::ranges::any_of(folders, [&](const string& f) {
    return !f.empty() && file.size() > f.size() && file.starts_with(f) && file[f.size()] == '/';
  });
}

// Which files are those of the C library and of the compiler. Problem: a marker says the same of a
// user's header that was found by -isystem, so a type in there would count in some programs only.
// So the folders of <stddef.h> and <stdint.h>, which <orrery/task.h> includes, are the system's, but
// for the files in them that have messages, and for folders of such files.
class files_of_system {
 public:
  files_of_system(const source& from, const program& found) {
    for (const string& file : from.files(true))
      if (file.ends_with("/stddef.h") || file.ends_with("/stdint.h")) folders_.insert(folder_of(file));
    for (const message_definition& m : found.messages) {
      const string file = from.where(m.begin).file;
      with_messages_.insert(file);
      if (const string folder = folder_of(file); is_below(folders_, folder)) users_.insert(folder);
    }
  }
  [[nodiscard]] bool contains(const string& file) const {
    return is_below(folders_, file) && !with_messages_.contains(file) && !is_below(users_, file);
  }

 private:
  std::set<string> folders_;
  std::set<string> with_messages_;
  std::set<string> users_;
};

}  // namespace

message_ids::message_ids(const source& from, const program& found) : from_(from), found_(found) {
  const files_of_system of_system(from, found);
  for (const type_declaration& t : found.types)
    if (const string file = from.where(t.begin).file; !of_system.contains(file) && !is_of_runtime(file))
      find_names_of(t);
}

std::size_t message_ids::first_token(std::size_t at) const {
  return static_cast<std::size_t>(std::ranges::lower_bound(from_.tokens(), at, {}, &token::begin) -
                                  from_.tokens().begin());
}

string_view message_ids::text(std::size_t token) const {
  return token < from_.tokens().size() ? from_.text_of(from_.tokens()[token]) : string_view();
}

std::size_t message_ids::behind_group(std::size_t token) const {
  int depth = 0;
  for (; token + 1 < from_.tokens().size(); ++token) {
    if (opens(text(token))) ++depth;
    if (closes(text(token)) && --depth == 0) return token + 1;
  }
  return token;
}

std::size_t message_ids::behind_attributes(std::size_t token) const {
  for (;;) {
    const bool of_gnu = text(token) == "__attribute__" || text(token) == "__attribute";
    const bool of_standard = text(token) == "[" && text(token + 1) == "[";
    if (!of_standard && !(of_gnu && text(token + 1) == "(")) return token;
    token = behind_group(of_standard ? token : token + 1);
  }
}

// A structure with its attributes, `struct __attribute__((packed)) x {...}`, without the variables
// of it; a name of a type with its whole declaration.
void message_ids::find_names_of(const type_declaration& t) {
  const auto& tokens = from_.tokens();
  bool is_typedef = false;
  int depth = 0;
  for (std::size_t i = first_token(t.begin); tokens[i].begin < t.end; ++i) {
    const string_view word = text(i);
    if (opens(word)) ++depth;
    if (closes(word)) --depth;
    is_typedef |= word == "typedef";
    if (word == "struct" || word == "union") {
      const std::size_t name = behind_attributes(i + 1);
      if (text(name + 1) == "{") {
        const std::size_t end = behind_attributes(behind_group(name + 1));
        types_.emplace(string(word) + ' ' + string(text(name)),
                       type_declaration{.begin = tokens[i].begin, .end = tokens[end - 1].end});
      }
    }
    if (!is_typedef || depth != 0 || tokens[i].kind != token_kind::name) continue;
    const string_view next = text(behind_attributes(i + 1));
    if (next == ";" || next == "," || next == "[") types_.emplace(string(word), t);
  }
}

void message_ids::add_definition(string& to, const string& name, names& known) const {
  if (!known.insert(name).second) return;
  const string_view message = name.starts_with("struct ") ? string_view(name).substr(7) : string_view(name);
  if (const auto m = std::ranges::find(found_.messages, message, &message_definition::name);
      m != found_.messages.end()) {
    if (message == name || known.insert(m->name).second) add_words(to, m->name_at, m->end, known);
  } else if (const auto t = types_.find(name); t != types_.end()) {
    add_words(to, t->second.begin, t->second.end, known);
  }
}

void message_ids::add_words(string& to, std::size_t begin, std::size_t end, names& known) const {
  const auto& tokens = from_.tokens();
  std::vector<string> named;
  string_view before;
  bool in_enumeration = false;
  for (std::size_t i = first_token(begin); tokens[i].begin < end && tokens[i].kind != token_kind::end; ++i) {
    if (tokens[i].kind == token_kind::directive) continue;
    const string_view word = as_one_word(from_.text_of(tokens[i]));
    if (word == "enum") in_enumeration = true;
    if (in_enumeration && word == "{") {
      while (tokens[i].begin < end && from_.text_of(tokens[i]) != "}") ++i;
      in_enumeration = false;
      before = "}";
      continue;
    }
    if (word == ";" || word == ",") in_enumeration = false;
    to += string(word) + ' ';
    if (tokens[i].kind == token_kind::name) {
      const bool tagged = before == "struct" || before == "union";
      const bool is_type = tagged || !is_behind_declarator(from_.text_of(tokens[i + 1]));
      if (before != "enum" && is_type) named.push_back(tagged ? string(before) + ' ' + string(word) : string(word));
    }
    before = word;
  }
  for (const string& name : named) add_definition(to, name, known);
}

string message_ids::expression(const message_definition& m, string_view type) const {
  string words;
  names known{m.name, "struct " + m.name};
  add_words(words, m.name_at, m.end, known);
  const std::uint64_t id = XXH3_64bits(words.data(), words.size());
  return fmt::format("(0x{:016x}ULL ^ sizeof({}) * 0x9e3779b97f4a7c15ULL)", id, type);
}

}  // namespace orrery_cc
