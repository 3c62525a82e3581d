// SPDX-License-Identifier: Apache-2.0
#include <tools/orrery_cc/command_line.hpp>
#include <tools/orrery_cc/response_file.hpp>

#include <algorithm>
#include <array>
#include <filesystem>

namespace orrery_cc {

namespace {

using std::string;
using std::string_view;
using kind = command_line::word::kind;

template <std::size_t N>
bool one_of(const std::array<string_view, N>& words, string_view w) {
  return std::ranges::find(words, w) != words.end();
}

// Options whose argument may be the next word.
constexpr std::array of_preprocessor{
    string_view("-I"),       string_view("-D"),           string_view("-U"),        string_view("-include"),
    string_view("-imacros"), string_view("-isystem"),     string_view("-iquote"),   string_view("-idirafter"),
    string_view("-iprefix"), string_view("-iwithprefix"), string_view("-isysroot"), string_view("-Xpreprocessor")};
constexpr std::array of_linker{string_view("-L"), string_view("-l"), string_view("-Xlinker"), string_view("-T"),
                               string_view("-u"), string_view("-z"), string_view("-e")};
constexpr std::array with_argument{string_view("--param"), string_view("-Xassembler"), string_view("-aux-info"),
                                   string_view("-arch"),   string_view("-target"),     string_view("-B")};

constexpr std::array old_standards{string_view("-ansi"), string_view("-std=c89"), string_view("-std=c90"),
                                   string_view("-std=iso9899:1990"), string_view("-std=iso9899:199409")};

bool is_joined(string_view w, string_view option) { return w.starts_with(option) && w.size() > option.size(); }

}  // namespace

namespace {

// Options that say how far to go, and where results go. `next` takes the following word. False: it
// is another option.
template <class Next>
bool take_own_option(command_line& c, const string& w, Next next) {
  using stop = command_line::stop;
  if (w == "-c") {
    c.until = stop::object;
  } else if (w == "-S") {
    c.until = stop::assembly;
  } else if (w == "-E" || w == "-M" || w == "-MM") {
    c.until = stop::preprocessed;
  } else if (w == "-###") {
    c.only_shows = true;
  } else if (w == "-fsyntax-only") {
    c.until = stop::syntax;
  } else if (w == "-o") {
    c.output = next();
  } else if (is_joined(w, "-o") && w[2] != 'b') {
    c.output = w.substr(2);
  } else if (w == "-MD" || w == "-MMD") {
    c.wants_dependencies = true;
    c.dependency_flag = w;
  } else if (w == "-MF") {
    c.dependency_file = next();
  } else if (w == "-MT" || w == "-MQ") {
    c.dependency_targets.push_back(w);
    c.dependency_targets.push_back(next());
  } else {
    return false;
  }
  return true;
}

}  // namespace

command_line parse_command_line(const std::vector<string>& given) {
  const std::vector<string> arguments = with_response_files(given);
  command_line c;
  string language;  // as the last -x says
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const string& w = arguments[i];
    const auto next = [&] { return i + 1 < arguments.size() ? arguments[++i] : string(); };
    if (w == "--emit-c" || w == "--emit-cpp-header") {
      (w == "--emit-c" ? c.emit_c : c.emit_cpp_header) = true;
      continue;
    }
    if (constexpr string_view option = "--cpp-namespace="; w.starts_with(option)) {
      c.cpp_namespace = w.substr(option.size());
      c.says_cpp_namespace = true;
      continue;
    }
    c.all.push_back(w);
    const auto next_too = [&] {
      c.all.push_back(next());
      return c.all.back();
    };
    const auto add = [&](kind what, std::vector<string> text) { c.words.push_back({what, std::move(text), {}}); };
    if (take_own_option(c, w, next_too)) continue;
    if (w == "-x" || is_joined(w, "-x")) {
      language = w == "-x" ? next_too() : w.substr(2);
      if (language == "none") language.clear();
    } else if (one_of(of_preprocessor, w)) {
      add(kind::preprocess, {w, next_too()});
    } else if (one_of(of_linker, w)) {
      add(kind::input, {w, next_too()});
    } else if (one_of(with_argument, w)) {
      add(kind::other, {w, next_too()});
    } else if (!w.starts_with('-') || w == "-") {
      const auto ending = std::filesystem::path(w).extension();
      const bool named_so = ending == ".c" || (ending == ".h" && c.emit_cpp_header);
      const bool is_c = language == "c" || (language.empty() && named_so);
      add(is_c ? kind::source : kind::input, {w});
      c.words.back().language = is_c && named_so ? string() : language;
    } else if (std::ranges::any_of(of_preprocessor, [&](string_view o) { return is_joined(w, o); }) ||
               w.starts_with("-Wp,") || w.starts_with("-M")) {
      add(kind::preprocess, {w});
    } else if (w.starts_with("-l") || w.starts_with("-L") || w.starts_with("-Wl,") || w == "-static" ||
               w == "-shared" || w == "-rdynamic" || w.starts_with("-nostartfiles") || w.starts_with("-fuse-ld")) {
      add(kind::input, {w});
    } else {
      if (w.starts_with("-std=") || w == "-ansi") c.old_standard = one_of(old_standards, w) ? w : string();
      add(kind::other, {w});
    }
  }
  return c;
}

bool command_line::reads_stdin() const {
  return std::ranges::any_of(words, [](const word& w) { return w.what == kind::source && w.text[0] == "-"; });
}

bool command_line::word::is_compiled() const {
  // A linker's script may have any other name.
  constexpr std::array of_sources{
      string_view(".c"),   string_view(".i"),   string_view(".ii"),  string_view(".cc"),  string_view(".cp"),
      string_view(".cxx"), string_view(".cpp"), string_view(".CPP"), string_view(".c++"), string_view(".C"),
      string_view(".m"),   string_view(".mi"),  string_view(".mm"),  string_view(".M"),   string_view(".mii"),
      string_view(".s"),   string_view(".S"),   string_view(".sx"),  string_view(".f"),   string_view(".for"),
      string_view(".ftn"), string_view(".F"),   string_view(".FOR"), string_view(".FTN"), string_view(".fpp"),
      string_view(".FPP"), string_view(".f90"), string_view(".f95"), string_view(".f03"), string_view(".f08"),
      string_view(".F90"), string_view(".F95"), string_view(".F03"), string_view(".F08"), string_view(".adb"),
      string_view(".ads"), string_view(".d"),   string_view(".go"),  string_view(".cu"),  string_view(".ll"),
      string_view(".bc")};
  if (what == kind::source) return true;
  if (what != kind::input || !is_file()) return false;
  return !language.empty() || one_of(of_sources, std::filesystem::path(text[0]).extension().string());
}

std::size_t command_line::compiled() const {
  return static_cast<std::size_t>(std::ranges::count_if(words, &word::is_compiled));
}

std::vector<string> command_line::sources() const {
  std::vector<string> files;
  for (const word& w : words)
    if (w.what == kind::source) files.push_back(w.text[0]);
  return files;
}

std::vector<string> command_line::inputs() const {
  std::vector<string> files;
  for (const word& w : words)
    if (w.what == kind::input && !w.text[0].starts_with('-')) files.push_back(w.text[0]);
  return files;
}

std::vector<string> command_line::options(bool to_preprocess) const {
  std::vector<string> chosen;
  for (const word& w : words)
    if (w.what == kind::other || (to_preprocess && w.what == kind::preprocess))
      chosen.insert(chosen.end(), w.text.begin(), w.text.end());
  return chosen;
}

}  // namespace orrery_cc
