// SPDX-License-Identifier: Apache-2.0
#include <tools/orrery_cc/cpp_header.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace orrery_cc {

using fmt::format;
using std::string;
using std::string_view;

namespace {

constexpr std::array words_of_cpp{
    string_view("and"),       string_view("bitand"),   string_view("bitor"),    string_view("bool"),
    string_view("catch"),     string_view("class"),    string_view("compl"),    string_view("concept"),
    string_view("constexpr"), string_view("decltype"), string_view("delete"),   string_view("explicit"),
    string_view("export"),    string_view("false"),    string_view("friend"),   string_view("mutable"),
    string_view("namespace"), string_view("new"),      string_view("noexcept"), string_view("not"),
    string_view("nullptr"),   string_view("operator"), string_view("or"),       string_view("private"),
    string_view("protected"), string_view("public"),   string_view("requires"), string_view("template"),
    string_view("this"),      string_view("throw"),    string_view("true"),     string_view("try"),
    string_view("typeid"),    string_view("typename"), string_view("using"),    string_view("virtual"),
    string_view("wchar_t"),   string_view("xor"),      string_view("char8_t"),  string_view("consteval")};
constexpr std::array<std::pair<string_view, string_view>, 6> other_words{{{"_Bool", "bool"},
                                                                          {"_Alignas", "alignas"},
                                                                          {"_Noreturn", ""},
                                                                          {"restrict", "__restrict"},
                                                                          {"_Static_assert", "static_assert"},
                                                                          {"_Thread_local", "thread_local"}}};

bool is_of_runtime(string_view file) {
  return file.ends_with("orrery/task/task.h") || file.ends_with("orrery/task/thesis.h");
}

bool is_array(member_kind k) {
  return k == member_kind::array || k == member_kind::strings || k == member_kind::messages ||
         k == member_kind::buffers;
}

/// Writes the header. Used once.
class cpp_header {
 public:
  cpp_header(const source& from, const program& found, string_view file) : from_(from), found_(found), file_(file) {}

  string run(string_view in) {
    const string space = in.empty() ? name_of_file() : string(in);
    for (const message_definition& m : found_.messages) check(m);
    for (const task_definition& t : found_.tasks) check(t);
    if (!errors_.empty()) throw source_error(errors_);
    string text =
        format("// Made by orrery-cc of {}; changes are lost.\n#pragma once\n\n#include <orrery/task/task.hpp>\n\n",
               std::filesystem::path(file_).filename().string());
    text +=
        "#include <cstddef>\n#include <cstdint>\n#include <cstring>\n#include <memory>\n#include <memory_resource>\n#include <optional>\n#include <string>\n#include <type_traits>\n#include <vector>\n\n";
    text += includes();
    text += format("\nnamespace {} {{\n\n", space);
    for (const type_declaration& t : found_.types)
      if (const location at = from_.where(t.begin); at.flags.empty() && !is_of_runtime(at.file))
        text += in_cpp(t.begin, t.end) + "\n";
    for (const message_definition& m : found_.messages) text += c_form(m) + in_cpp(m) + conversions(m);
    for (const task_definition& t : found_.tasks) text += in_cpp(t);
    return text + format("\n}}  // namespace {}\n", space);
  }

 private:
  void error(std::size_t at, string_view name, string_view what) {
    errors_ += describe(from_.where(at), "error", what, name.size());
  }
  string name_of_file() const {
    string name = std::filesystem::path(file_).stem().string();
    for (char& c : name)
      if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
    return std::isdigit(static_cast<unsigned char>(name[0])) != 0 ? "_" + name : name;
  }

  // --- what C++ cannot have ---
  void check(const message_definition& m) {
    if (m.has_functions)
      error(
          m.name_at, m.name,
          format("message '{}' has functions, which are of C: C++ can have messages of <orrery/task.h> only", m.name));
    check_name(m.name_at, m.name);
    for (const member& each : m.members) {
      check_name(each.at, each.name);
      if (is_array(each.kind) && each.type.find('{') != string::npos)
        error(each.at, each.name,
              format("the type of the elements of '{}' has no name, which C++ needs: declare the structure before",
                     each.name));
    }
  }
  void check(const task_definition& t) {
    check_name(t.name_at, t.name);
    for (const tag& g : t.tags) {
      check_name(g.at, g.name);
      if (!g.typed)
        error(g.at, g.name, format("tag '{0}' has no type, which C++ needs: write tag {0}(Message);", g.name));
    }
  }
  void check_name(std::size_t at, const string& name) {
    if (std::ranges::find(words_of_cpp, name) != words_of_cpp.end())
      error(at, name, format("'{}' is a word of C++: give it another name", name));
  }

  // --- text of C ---
  // The tokens there, as C++ spells them.
  string in_cpp(std::size_t begin, std::size_t end) const {
    string text;
    std::size_t at = begin;
    for (const token& t : from_.tokens()) {
      if (t.begin < begin || t.end > end || t.kind != token_kind::name) continue;
      const auto* const other =
          std::ranges::find(other_words, from_.text_of(t), &std::pair<string_view, string_view>::first);
      if (other == other_words.end()) continue;
      text += from_.text_of(at, t.begin);
      text += other->second;
      at = t.end;
    }
    return text + string(from_.text_of(at, end));
  }
  string type_of(const member& m) const { return m.names_buffer ? "orrery_buffer" : in_cpp(m.type_begin, m.type_end); }
  // That of an element that a vector can have.
  string element_of(const member& m) const {
    string type = type_of(m);
    for (const string_view word : {"const ", " const"})
      if (const auto i = type.find(word); i != string::npos) type.erase(i, word.size());
    return type == "bool" ? "unsigned char" : type;  // std::vector<bool> has no bools
  }
  // What the file includes of the system: the header needs it, too.
  string includes() const {
    const std::vector<string> entered = from_.files(true);
    std::set<string> all;
    for (const string& name : from_.files(false)) {
      std::ifstream file(name);
      for (string line; std::getline(file, line);) {
        const auto first = line.find_first_not_of(" \t");
        if (first == string::npos || line[first] != '#' || line.find("include") == string::npos) continue;
        const auto open = line.find('<');
        const auto close = line.find('>');
        if (open == string::npos || close == string::npos || close < open) continue;
        const string header = line.substr(open + 1, close - open - 1);
        const bool is_used = std::ranges::any_of(entered, [&](const string& e) { return e.ends_with("/" + header); });
        if (!is_of_runtime(name) && is_used && !header.starts_with("orrery/")) all.insert(header);
      }
    }
    string text;
    for (const string& header : all) text += format("#include <{}>\n", header);
    return text;
  }

  // --- messages ---
  static bool counts(const message_definition& m, const member& each) {
    return std::ranges::any_of(m.members, [&](const member& o) { return is_array(o.kind) && o.count == each.name; });
  }
  bool has_buffers(const message_definition& m) const {
    return std::ranges::any_of(m.members, [&](const member& each) {
      if (each.kind == member_kind::buffer || each.kind == member_kind::buffers) return true;
      if ((each.kind != member_kind::message && each.kind != member_kind::messages) || each.type == m.name)
        return false;
      return has_buffers(*std::ranges::find(found_.messages, each.type, &message_definition::name));
    });
  }
  string plain(const member& each) const {
    return format("{} {};", type_of(each),
                  in_cpp(each.declarator_begin, std::max(each.width_end, each.declarator_end)));
  }

  string c_form(const message_definition& m) const {
    string text = format("namespace c {{  // as C has it\nstruct {} {{\n", m.name);
    for (const member& each : m.members) {
      switch (each.kind) {
        case member_kind::string:
          text += format("  char* {};\n", each.name);
          break;
        case member_kind::strings:
          text += format("  char** {};\n", each.name);
          break;
        case member_kind::message:
        case member_kind::messages:
          text += format("  {}* {};\n", each.type, each.name);
          break;
        case member_kind::buffer:
          text += format("  orrery_buffer {};\n", each.name);
          break;
        case member_kind::buffers:
          text += format("  orrery_buffer* {};\n", each.name);
          break;
        case member_kind::array:
          text += format("  {}* {};\n", element_of(each), each.name);
          break;
        default:
          text += "  " + plain(each) + "\n";
      }
    }
    return text + "};\n}  // namespace c\n\n";
  }

  string in_cpp(const message_definition& m) const {
    string text = format("struct {} {{\n", m.name);
    for (const member& each : m.members) {
      switch (each.kind) {
        case member_kind::string:
          text += format("  std::optional<std::string> {};\n", each.name);
          break;
        case member_kind::strings:
          text += format("  std::vector<std::optional<std::string>> {};\n", each.name);
          break;
        case member_kind::message:
          text += format("  std::{}<{}> {};\n", each.type == m.name ? "unique_ptr" : "optional", each.type, each.name);
          break;
        case member_kind::messages:
          text += format("  std::vector<{}> {};\n", each.type, each.name);
          break;
        case member_kind::buffer:
          text += format("  orrery::tasks::buffer {};\n", each.name);
          break;
        case member_kind::buffers:
          text += format("  std::vector<orrery::tasks::buffer> {};\n", each.name);
          break;
        case member_kind::array:
          text += format("  std::vector<{}> {};\n", element_of(each), each.name);
          break;
        default:
          if (!counts(m, each)) text += "  " + initialized(each) + "\n";
      }
    }
    text += format(
        "\n  // For orrery::tasks::send and mail::open.\n"
        "  using orrery_c = c::{0};\n"
        "  struct orrery_table;\n"
        "  [[nodiscard]] static const orrery_message_type& orrery_type() noexcept;\n"
        "  static void orrery_write(const {0}& from, orrery_c& to, std::pmr::memory_resource& memory);\n"
        "  static void orrery_read(orrery_c& from, {0}& to);\n",
        m.name);
    if (has_buffers(m)) text += format("  static void orrery_sent({}& value) noexcept;\n", m.name);
    return text + "};\n\n";
  }
  string initialized(const member& each) const {
    string text = plain(each);
    text.insert(text.size() - 1, " = {}");
    return text;
  }

  string conversions(const message_definition& m) const {
    return type_table(m) + writes(m) + reads(m) + (has_buffers(m) ? sends(m) : "");
  }

  // Constants, which may name each other.
  string type_table(const message_definition& m) const {
    string rows;
    std::size_t count = 0;
    for (const member& each : m.members) {
      const string row = row_of(m, each);
      if (!row.empty()) rows += format("{}    {}", count++ == 0 ? "" : ",\n", row);
    }
    string text = format("struct {}::orrery_table {{\n", m.name);
    if (count != 0) text += "  static const orrery_field fields[];\n";
    text += "  static const orrery_message_type type;\n};\n";
    if (count != 0) text += format("inline const orrery_field {}::orrery_table::fields[] = {{\n{}}};\n", m.name, rows);
    text += format(
        "inline const orrery_message_type {0}::orrery_table::type = {{\"{0}\", 0x{1:016x}ULL, sizeof(c::{0}), {2}, {3}}};\n"
        "inline const orrery_message_type& {0}::orrery_type() noexcept {{ return orrery_table::type; }}\n\n",
        m.name, id_of(from_, m), count, count != 0 ? m.name + "::orrery_table::fields" : "nullptr");
    return text;
  }
  string copy_of(const member& each) const;
  string row_of(const message_definition& m, const member& each) const;
  string writes(const message_definition& m) const;
  string reads(const message_definition& m) const;
  string sends(const message_definition& m) const;

  string in_cpp(const task_definition& t) const;

  const source& from_;
  const program& found_;
  string_view file_;
  string errors_;
};

// As the table of task.h has a member that points to something; empty: it does not.
string cpp_header::row_of(const message_definition& m, const member& each) const {
  const string pointer = format("offsetof(c::{}, {})", m.name, each.name);
  string of = "nullptr";
  switch (each.kind) {
    case member_kind::string:
      return format("{{\"{}\", ORRERY_STRING, {}, 1, 0, 0, 0, nullptr}}", each.name, pointer);
    case member_kind::message:
      return format("{{\"{0}\", ORRERY_ONE, {1}, sizeof(c::{2}), 0, 0, 0, &{2}::orrery_table::type}}", each.name,
                    pointer, each.type);
    case member_kind::buffer:
      return format("{{\"{}\", ORRERY_BUFFER, {}, 0, 0, 0, 0, nullptr}}", each.name, pointer);
    case member_kind::strings:
      of = "&orrery_string_type";
      break;
    case member_kind::buffers:
      of = "&orrery_buffer_type";
      break;
    case member_kind::messages:
      of = format("&{}::orrery_table::type", each.type);
      break;
    case member_kind::array:
      break;
    default:
      return {};
  }
  return format(
      "{{\"{0}\", ORRERY_ARRAY, {1}, sizeof(*c::{2}{{}}.{0}), offsetof(c::{2}, {3}), sizeof(c::{2}::{3}), "
      "std::is_signed_v<decltype(c::{2}::{3})>, {4}}}",
      each.name, pointer, m.name, each.count, of);
}

string cpp_header::writes(const message_definition& m) const {
  string text = format(
      "inline void {0}::orrery_write(const {0}& from, c::{0}& to, [[maybe_unused]] std::pmr::memory_resource& memory) {{\n"
      "  to = {{}};\n",
      m.name);
  std::set<string> counted;
  for (const member& each : m.members) {
    const string& n = each.name;
    if (is_array(each.kind))
      text += format("  orrery::tasks::set_count(to.{0}, from.{1}.size(), {2}, \"{3}.{1}\");\n", each.count, n,
                     counted.insert(each.count).second, m.name);
    switch (each.kind) {
      case member_kind::string:
        text += format("  to.{0} = orrery::tasks::text_of(from.{0});\n", n);
        break;
      case member_kind::strings:
        text += format(
            "  to.{0} = orrery::tasks::array_in<char*>(memory, from.{0}.size());\n"
            "  for (std::size_t i = 0; i < from.{0}.size(); ++i) to.{0}[i] = orrery::tasks::text_of(from.{0}[i]);\n",
            n);
        break;
      case member_kind::message:
        text += format(
            "  if (from.{0}) {{\n    to.{0} = orrery::tasks::array_in<c::{1}>(memory, 1);\n"
            "    {1}::orrery_write(*from.{0}, *to.{0}, memory);\n  }}\n",
            n, each.type);
        break;
      case member_kind::messages:
        text += format(
            "  to.{0} = orrery::tasks::array_in<c::{1}>(memory, from.{0}.size());\n"
            "  for (std::size_t i = 0; i < from.{0}.size(); ++i) {1}::orrery_write(from.{0}[i], to.{0}[i], memory);\n",
            n, each.type);
        break;
      case member_kind::buffer:
        text += format("  to.{0} = from.{0}.c();\n", n);
        break;
      case member_kind::buffers:
        text += format(
            "  to.{0} = orrery::tasks::array_in<orrery_buffer>(memory, from.{0}.size());\n"
            "  for (std::size_t i = 0; i < from.{0}.size(); ++i) to.{0}[i] = from.{0}[i].c();\n",
            n);
        break;
      case member_kind::array:
        text +=
            format("  to.{0} = from.{0}.empty() ? nullptr : const_cast<{1}*>(from.{0}.data());\n", n, element_of(each));
        break;
      default:
        if (!counts(m, each)) text += copy_of(each);
    }
  }
  return text + "}\n";
}

string cpp_header::copy_of(const member& each) const {
  if (each.width_end > each.declarator_end) return format("  to.{0} = from.{0};\n", each.name);  // a bit-field
  return format("  std::memcpy(&to.{0}, &from.{0}, sizeof to.{0});\n", each.name);
}

string cpp_header::reads(const message_definition& m) const {
  string text =
      format("inline void {0}::orrery_read([[maybe_unused]] c::{0}& from, [[maybe_unused]] {0}& to) {{\n", m.name);
  for (const member& each : m.members) {
    const string& n = each.name;
    const string length = format("static_cast<std::size_t>(from.{})", each.count);
    switch (each.kind) {
      case member_kind::string:
        text += format("  if (from.{0} != nullptr) to.{0} = from.{0};\n", n);
        break;
      case member_kind::strings:
        text += format(
            "  to.{0}.resize({1});\n"
            "  for (std::size_t i = 0; i < to.{0}.size(); ++i)\n    if (from.{0}[i] != nullptr) to.{0}[i] = from.{0}[i];\n",
            n, length);
        break;
      case member_kind::message:
        text += format(
            "  if (from.{0} != nullptr) {{\n    {2};\n    {1}::orrery_read(*from.{0}, *to.{0});\n  }}\n", n, each.type,
            each.type == m.name ? format("to.{} = std::make_unique<{}>()", n, m.name) : format("to.{}.emplace()", n));
        break;
      case member_kind::messages:
        text += format(
            "  to.{0}.resize({1});\n"
            "  for (std::size_t i = 0; i < to.{0}.size(); ++i) {2}::orrery_read(from.{0}[i], to.{0}[i]);\n",
            n, length, each.type);
        break;
      case member_kind::buffer:
        text += format("  to.{0} = orrery::tasks::buffer(from.{0});\n", n);
        break;
      case member_kind::buffers:
        text += format("  for (std::size_t i = 0; i < {1}; ++i) to.{0}.emplace_back(from.{0}[i]);\n", n, length);
        break;
      case member_kind::array:
        text += format("  if (from.{0} != nullptr) to.{0}.assign(from.{0}, from.{0} + {1});\n", n, length);
        break;
      default:
        if (!counts(m, each)) text += copy_of(each);
    }
  }
  return text + "}\n";
}

// The buffers have gone with the message.
string cpp_header::sends(const message_definition& m) const {
  string text = format("inline void {0}::orrery_sent({0}& value) noexcept {{\n", m.name);
  for (const member& each : m.members) {
    const bool is_message = each.kind == member_kind::message || each.kind == member_kind::messages;
    if (is_message && each.type != m.name &&
        !has_buffers(*std::ranges::find(found_.messages, each.type, &message_definition::name)))
      continue;
    if (each.kind == member_kind::buffer) text += format("  value.{}.forget();\n", each.name);
    if (each.kind == member_kind::buffers) text += format("  for (auto& each : value.{}) each.forget();\n", each.name);
    if (each.kind == member_kind::message)
      text += format("  if (value.{0}) {1}::orrery_sent(*value.{0});\n", each.name, each.type);
    if (each.kind == member_kind::messages)
      text += format("  for (auto& each : value.{0}) {1}::orrery_sent(each);\n", each.name, each.type);
  }
  return text + "}\n";
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
    cases += format("        case static_cast<std::uint64_t>({}_{}): return handle_{}({});\n", t.name, g.name, g.name,
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

}  // namespace

string generate_cpp_header(const source& from, const program& found, string_view file, string_view in) {
  return cpp_header(from, found, file).run(in);
}

}  // namespace orrery_cc
