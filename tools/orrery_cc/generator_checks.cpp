// SPDX-License-Identifier: Apache-2.0
// What only the C compiler can know of types and numbers: assertions in the user's lines, which say in words of the language what is wrong.
#include <tools/orrery_cc/generator_class.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>

#include <fmt/format.h>

namespace orrery_cc {

using fmt::format;
using std::string;
using std::string_view;

namespace {

constexpr string_view most_bytes = "0xfffe0000ULL";
constexpr std::array words_of_numbers{
    string_view("int"),      string_view("char"),       string_view("short"),    string_view("long"),
    string_view("unsigned"), string_view("signed"),     string_view("_Bool"),    string_view("bool"),
    string_view("float"),    string_view("double"),     string_view("const"),    string_view("volatile"),
    string_view("int8_t"),   string_view("int16_t"),    string_view("int32_t"),  string_view("int64_t"),
    string_view("uint8_t"),  string_view("uint16_t"),   string_view("uint32_t"), string_view("uint64_t"),
    string_view("size_t"),   string_view("orrery_task")};

bool is_tagged(string_view type) {
  return type.starts_with("struct ") || type.starts_with("union ") || type.starts_with("enum ");
}
// Its words say that it is a number; another type may be a name for a pointer.
bool is_number(string_view type) {
  while (!type.empty()) {
    const std::size_t end = std::min(type.find(' '), type.size());
    if (std::ranges::find(words_of_numbers, type.substr(0, end)) == words_of_numbers.end()) return false;
    type.remove_prefix(std::min(end + 1, type.size()));
  }
  return true;
}

// The value of a number as it stands there, with or without a sign.
std::optional<std::int64_t> number_in(const string& text) {
  char* end = nullptr;
  errno = 0;
  const std::int64_t n = std::strtoll(text.c_str(), &end, 0);
  if (errno == ERANGE || end == text.c_str() || string_view(end).find_first_not_of("uUlL") != string_view::npos)
    return std::nullopt;
  return n;
}

string is_array(const string& e) {
  return format(
      "(__builtin_classify_type({0}) == 5 && !__builtin_types_compatible_p(__typeof__({0}), __typeof__(0 ? ({0}) : ({0}))))",
      e);
}
// A pointer, a list of arguments, or a buffer.
string is_address(const string& e) {
  return format(
      "((__builtin_classify_type({0}) == 5 && !{1}) || __builtin_types_compatible_p(__typeof__({0}), __builtin_va_list) || "
      "__builtin_types_compatible_p(__typeof__({0}), orrery_buffer))",
      e, is_array(e));
}
// "in[0]." as a part of a constant's name: "in_i0__".
string name_of_path(string_view path) {
  string name;
  for (const char c : path) {
    if (c == '.') name += "__";
    if (c == '[') name += "_i";
    if (c != '.' && c != '[' && c != ']') name += c;
  }
  return name;
}
// Of an array whose type has a name; a character of any other.
string element_of(const string& e) { return format("(*__builtin_choose_expr({1}, {0}, (char *)0))", e, is_array(e)); }

// An array whose type has a name may have as many dimensions.
constexpr int most_dimensions = 8;

struct address_check {
  string types;  // of the elements, which would be long expressions
  string condition;
};
// That neither `e` nor an element of it is an address.
address_check has_no_address(const string& e, const string& prefix) {
  address_check all{format("typedef __typeof__({}) {}_type0_; ", e, prefix), {}};
  for (int i = 0; i <= most_dimensions; ++i) {
    const string one = format("(*({}_type{}_ *)0)", prefix, i);
    all.condition += (i == 0 ? "!" : " && !") + is_address(one);
    if (i < most_dimensions) all.types += format("typedef __typeof__({}) {}_type{}_; ", element_of(one), prefix, i + 1);
  }
  return all;
}

}  // namespace

// At the column of `at`, so that compilers point to what the user wrote. They show the name of the constant, too, so it is a short one. GCC would put a
// backslash before quotation marks of the text.
string generator::assertion(std::size_t at, const string& name, const string& condition, const string& text) const {
  const location here = from_.where(at);
  string pad;
  for (const char c : from_.text_of(at - std::min(at, here.column - 1), at)) pad += c == '\t' ? '\t' : ' ';
  const string place = "\n" + rewriter::marker(here, " 3") + pad;
  return format("{0}enum {{ {1} = {2} }};{0}_Static_assert({0}{1}, \"{3}\");", place, name, condition, text);
}

string generator::checks_of(const message_definition& m) const {
  string code =
      m.has_functions
          ? assertion(
                m.name_at, m.name + "_size_", format("sizeof(struct {}) <= 0x7fffffff", m.name),
                format("the message {} has 2 GiB or more, which its msg_size cannot say: let writeAt put elements "
                       "behind the structure, or leave out the functions, and send a buffer",
                       m.name))
          : assertion(m.name_at, m.name + "_size_", format("sizeof(struct {}) <= {}", m.name, most_bytes),
                      format("the message {} has more than 4 GiB, which is the most: count elements in a member, or "
                             "send a buffer",
                             m.name));
  code += assertion(
      m.name_at, m.name + "_alignment_", format("_Alignof(struct {}) <= 16", m.name),
      format("the message {} asks for an alignment of more than 16 bytes, which messages do not have: leave out "
             "_Alignas, or {}send a buffer, which lies at a multiple of 64",
             m.name, m.has_functions ? "leave out the functions, and " : ""));
  return code + checks_of(m, m.members, "");
}

// `path` leads to the members: empty, or that of a structure or union with its point, "in[0].".
string generator::checks_of(const message_definition& m, const std::vector<member>& members, const string& path) const {
  string code;
  for (const member& each : members) {
    string below = path;
    if (!each.name.empty()) {
      below += each.name;
      for (int i = 0; i < each.dimensions + each.pointers; ++i) below += "[0]";
      below += '.';
    }
    code += checks_of(m, each.group, below);
    // Members of several structures may have one name, and several structures one body.
    const string prefix =
        m.name + "_" + each.name + (path.empty() ? string() : format("_{}{}", name_of_path(path), each.at));
    const string of_struct = format("((struct {} *)0)->{}", m.name, path);
    const bool pointed = each.kind == member_kind::array;
    if ((each.kind != member_kind::plain && !pointed) || each.name.empty() || each.has_width || is_number(each.type))
      continue;
    string element = of_struct + each.name;
    for (int i = 0; i < each.dimensions && !pointed; ++i) element += "[0]";
    if (pointed) element = format("(*{})", element);
    if (!is_tagged(each.type)) {
      const address_check check = has_no_address(element, prefix);
      code += "\n" + rewriter::marker(from_.where(each.at), " 3") + check.types;
      code += assertion(
          each.at, prefix + "_type_", check.condition,
          m.has_functions
              ? format("the type of {0} is a name for a pointer or a buffer, which would be sent as an address: write "
                       "one pointer with its star, as in char *{0}, whose elements writeAt puts behind the structure, "
                       "or leave out the functions",
                       each.name)
              : format("the type of {0} is a name for a pointer or a buffer, which would be sent as an address: write "
                       "what it stands for, as in char *{0}, or count elements in a member",
                       each.name));
    }
    if (!pointed) continue;
    code += assertion(
        each.at, prefix + "_size_",
        format("sizeof({}) <= {} && _Alignof(__typeof__({})) <= 16", element, most_bytes, element),
        format("an element of {} has more than 4 GiB, or asks for an alignment of more than 16 bytes", each.name));
  }
  return code;
}

// Empty: the words of its type say that it is a whole number.
string generator::check_of_count(const message_definition& m, const member& array) const {
  const auto counter = std::ranges::find(m.members, array.count, &member::name);
  if (counter == m.members.end() || is_number(counter->type) || counter->type.starts_with("enum ")) return {};
  const string e = format("((struct {} *)0)->{}", m.name, array.count);
  return assertion(
      counter->at, format("{}_{}_count_", m.name, array.name),
      format("__builtin_classify_type({0}) >= 1 && __builtin_classify_type({0}) <= 4 && sizeof({0}) <= 8", e),
      format("{} counts the elements of {}, and is to be a whole number of at most 64 bits", array.count, array.name));
}

string generator::checks_of(const task_definition& t) {
  string code =
      assertion(t.name_at, t.name + "_size_", format("sizeof(struct {}) <= {}", t.name, most_bytes),
                format("the state of task {} has more than 4 GiB, which is the most: allocate the memory in {}_start",
                       t.name, t.name));
  code += assertion(
      t.name_at, t.name + "_alignment_", format("_Alignof(struct {}) <= 16", t.name),
      format("the state of task {} asks for an alignment of more than 16 bytes, which it does not have: make such "
             "variables in its functions",
             t.name));
  for (const tag& g : t.tags) {
    if (g.typed) continue;
    code +=
        assertion(g.at, format("{}_{}_range_", t.name, g.name),
                  format("(int64_t){0}_{1} >= 0 && (int64_t){0}_{1} <= 0x7fffffff", t.name, g.name),
                  format("tag {} has no type, so that it is an int: give it a number from 0 to 2147483647", g.name));
    // Tasks of one program may share a tag: then it must mean the same number.
    const string& first = untyped_.find(g.name)->second;
    if (first != t.name)
      code += assertion(g.at, format("{}_{}_is_{}_{}_", t.name, g.name, first, g.name),
                        format("(int64_t){0}_{2} == (int64_t){1}_{2}", t.name, first, g.name),
                        format("tag {} has another number in task {}: tags without a type are shared by all tasks of a "
                               "source, so give both the same number",
                               g.name, first));
  }
  // Tags of a run count from a number that may be known here, or to the compiler only.
  struct numbered {
    const tag* of;
    std::size_t run;
    std::optional<std::int64_t> number;
  };
  std::vector<numbered> all;
  std::size_t run = 0;
  std::optional<std::int64_t> next = 0;
  for (const tag& g : t.tags) {
    if (!g.value.empty()) {
      ++run;
      next = number_in(g.value);
    }
    for (const numbered& before : all) {
      if (before.run == run) continue;
      if (before.number && next) {
        if (*before.number == *next)
          error(g.at, g.name,
                format("tag '{}' has the number {}, which tag '{}' has: give it another one", g.name, *next,
                       before.of->name));
      } else {
        code += assertion(g.at, format("{}_{}_is_not_{}_", t.name, g.name, before.of->name),
                          format("(int64_t){0}_{1} != (int64_t){0}_{2}", t.name, g.name, before.of->name),
                          format("tag {} has the number of tag {}: give it another one", g.name, before.of->name));
      }
    }
    all.push_back({&g, run, next});
    if (next && *next == std::numeric_limits<std::int64_t>::max()) next.reset();  // the compiler refuses it
    if (next) ++*next;
  }
  return code;
}

}  // namespace orrery_cc
