// SPDX-License-Identifier: Apache-2.0
#include <tools/orrery_cc/driver.hpp>

#include <tools/orrery_cc/cpp_header.hpp>
#include <tools/orrery_cc/failure.hpp>
#include <tools/orrery_cc/generator.hpp>
#include <tools/orrery_cc/parser.hpp>
#include <tools/orrery_cc/words.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace orrery_cc {

namespace fs = std::filesystem;
using std::string;
using kind = command_line::word::kind;
using stop = command_line::stop;

namespace {

// C that tasks run: its cleanups run when a task ends by orrery_exit, which is an exception; and a
// function with much on its stack touches each page of it, so that a task that has no room for it
// runs into the guard, not over it.
constexpr std::array for_tasks{"-fexceptions", "-fstack-clash-protection"};

string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in || fs::is_directory(path)) give_up(fmt::format("{} cannot be read", path.string()));
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

int driver::run() {
  if (asked_.only_shows) become_compiler();
  const bool each_alone = asked_.until == stop::object || asked_.until == stop::assembly;
  if (each_alone && !asked_.emit_c && !asked_.output.empty() && asked_.compiled() > 1)
    give_up(
        "-o names one file, which cannot hold what -c or -S makes of several sources; leave -o out, or call once "
        "for each source");
  if (asked_.reads_stdin()) keep_stdin();
  if (asked_.emit_cpp_header) return emit_cpp_header();
  if (asked_.emit_c) return emit();
  if (asked_.until != stop::preprocessed)
    for (const string& file : asked_.sources()) translate_or_refuse(file);
  const bool links = asked_.until == stop::linked && needs_runtime();
  if (translated_.empty() && refused_.empty() && !links) become_compiler();
  return compile(links);
}

// The compiler reads it more than once: to preprocess it, and to compile it if it has no tasks.
void driver::keep_stdin() {
  std::string all;
  std::array<char, 1 << 16> part{};
  for (std::size_t n = 0; (n = std::fread(part.data(), 1, part.size(), stdin)) != 0;) all.append(part.data(), n);
  compiler_.give_stdin(work_.write("stdin", all));
}

// What is wrong in one source is no reason not to say what is wrong in the next.
void driver::translate_or_refuse(const string& file) {
  try {
    if (auto c = translate(file)) translated_.emplace(file, std::move(*c));
  } catch (const source_error& e) {
    std::fputs(e.what(), stderr);
    refuse(file, 1);
  } catch (const failed& f) {
    refuse(file, f.code);
  }
}

void driver::refuse(const string& file, int code) {
  refused_.insert(file);
  code_ = code;
}

void driver::become_compiler() const {
  words all;
  if (fs::exists(compiler_.include() / "orrery" / "task.h")) all = {"-I", compiler_.include().string()};
  if (asked_.until != stop::preprocessed && !asked_.sources().empty())
    all.insert(all.end(), for_tasks.begin(), for_tasks.end());
  all.insert(all.end(), asked_.all.begin(), asked_.all.end());
  work_.remove();
  compiler_.become(all);
}

string driver::output_of(const string& file) const {
  if (asked_.until != stop::linked && !asked_.output.empty()) return asked_.output;
  return fs::path(file).stem().string() + (asked_.until == stop::assembly ? ".s" : ".o");
}

driver::preprocessed driver::preprocess(const string& file) {
  const fs::path out = work_.file("preprocessed.i");
  words call_with = asked_.options(true);
  for (const string& w : {string("-I"), compiler_.include().string(), string("-x"), string("c"), string("-E"), file,
                          string("-o"), out.string()})
    call_with.push_back(w);
  if (asked_.wants_dependencies) add_dependencies(call_with, file);
  // The compiler says again what it has to say of a source that is left to it.
  const fs::path errors = work_.file("errors");
  const int code = compiler_.call(call_with, errors);
  string said = read_file(errors);
  if (code != 0) {
    std::fputs(said.c_str(), stderr);
    throw failed{code};
  }
  return {source(read_file(out)), std::move(said)};
}

std::optional<string> driver::translate(const string& file) {
  const auto [from, said] = preprocess(file);
  const program found = parse(from);
  uses_runtime_ |= found.knows_runtime;
  if (found.is_plain_c()) return std::nullopt;
  std::fputs(said.c_str(), stderr);
  return generate(from, found, file == "-" ? "<stdin>" : file, asked_.old_standard);
}

void driver::add_dependencies(words& to, const string& file) const {
  const string object = output_of(file);
  to.push_back(asked_.dependency_flag);
  to.emplace_back("-MF");
  to.push_back(!asked_.dependency_file.empty() ? asked_.dependency_file
                                               : fs::path(object).replace_extension(".d").string());
  if (asked_.dependency_targets.empty()) {
    to.emplace_back("-MT");
    to.push_back(object);
  } else {
    to.insert(to.end(), asked_.dependency_targets.begin(), asked_.dependency_targets.end());
  }
}

int driver::write_output(const string& text) const {
  if (asked_.output.empty()) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
      give_up(fmt::format("the output cannot be written: {}", std::strerror(errno)));
    return 0;
  }
  std::ofstream out(asked_.output, std::ios::binary);
  if (!(out << text).flush()) give_up(fmt::format("{} cannot be written", asked_.output));
  return 0;
}

int driver::emit() {
  string all;
  for (const string& file : asked_.sources()) {
    const auto c = translate(file);
    if (!c) give_up(fmt::format("{} has no task and no message; --emit-c has nothing to show", file));
    all += *c;
  }
  return write_output(all);
}

int driver::emit_cpp_header() {
  const words files = asked_.sources();
  if (files.size() != 1)
    give_up("--emit-cpp-header takes one file: orrery-cc --emit-cpp-header weather.h -o weather.hpp");
  if (asked_.says_cpp_namespace && !is_namespace(asked_.cpp_namespace))
    give_up(fmt::format(
        "'{}' cannot name a namespace: --cpp-namespace= takes a name of C++, such as weather, or names as in "
        "weather::posts",
        asked_.cpp_namespace));
  // As a file that another one includes, so that a #pragma once is in its place.
  const string includes =
      work_.write("includes.c", fmt::format("#include \"{}\"\n", fs::absolute(files[0]).string())).string();
  const auto [from, said] = preprocess(includes);
  std::fputs(said.c_str(), stderr);
  const program found = parse(from);
  if (found.is_plain_c())
    give_up(fmt::format("{} has no task and no message; --emit-cpp-header has nothing to show", files[0]));
  return write_output(generate_cpp_header(from, found, files[0], asked_.cpp_namespace));
}

bool driver::needs_runtime() const {
  if (!translated_.empty() || uses_runtime_) return true;
  for (const string& file : asked_.inputs()) {
    if (!fs::is_regular_file(file)) continue;
    std::ifstream in(file, std::ios::binary);
    const string bytes{std::istreambuf_iterator<char>(in), {}};
    if (bytes.find("orrery_run") != string::npos || bytes.find("orrery_send") != string::npos ||
        bytes.find("orrery_create") != string::npos)
      return true;
  }
  return false;
}

// What is compiled has line markers, which are an extension that -Wpedantic lets Clang speak of in its own output.
c_compiler::words driver::options_for_translated() const {
  words all = asked_.options(false);
  const bool strict = std::ranges::any_of(all, [](const string& w) {
    return w == "-Wpedantic" || w == "-pedantic" || w == "-pedantic-errors" || w == "-Weverything";
  });
  if (!strict) return all;
  const fs::path macros = work_.file("macros");
  if (compiler_.call({"-E", "-dM", "-x", "c", "/dev/null", "-o", macros.string()}) == 0 &&
      read_file(macros).find("#define __clang__") != string::npos)
    all.emplace_back("-Wno-gnu-line-marker");
  return all;
}

int driver::compile(bool links) {
  std::map<string, string> objects;
  for (const auto& [file, c] : translated_) {
    const fs::path in = work_.write(fmt::format("{}.i", objects.size()), c);
    words call_with = options_for_translated();
    call_with.insert(call_with.end(), for_tasks.begin(), for_tasks.end());
    for (const char* w : {"-x", "cpp-output"}) call_with.emplace_back(w);
    call_with.push_back(in.string());
    if (asked_.until == stop::syntax) {
      call_with.emplace_back("-fsyntax-only");
    } else {
      const string object =
          asked_.until == stop::linked ? work_.file(fmt::format("{}.o", objects.size())).string() : output_of(file);
      call_with.emplace_back(asked_.until == stop::assembly ? "-S" : "-c");
      call_with.emplace_back("-o");
      call_with.push_back(object);
      objects.emplace(file, object);
    }
    if (const int code = compiler_.call(call_with); code != 0) refuse(file, code);
  }
  if (asked_.until != stop::linked || code_ != 0) compile_rest();
  return asked_.until == stop::linked && code_ == 0 ? link(objects, links) : code_;
}

// What is left to the compiler: sources that have no tasks, and those of other languages.
void driver::compile_rest() {
  // Where nothing is linked, since another source was refused, sources of C are looked at only.
  const bool looks = asked_.until == stop::syntax || asked_.until == stop::linked;
  for (const auto& w : asked_.words) {
    const bool in_c = w.what == kind::source;
    if (!w.is_compiled() || (!in_c && asked_.until == stop::linked)) continue;
    const string& file = w.text[0];
    if (translated_.contains(file) || refused_.contains(file)) continue;
    words call_with;
    if (in_c) call_with.insert(call_with.end(), for_tasks.begin(), for_tasks.end());
    const words options = asked_.options(true);
    call_with.insert(call_with.end(), options.begin(), options.end());
    call_with.emplace_back("-I");
    call_with.push_back(compiler_.include().string());
    if (!in_c && asked_.wants_dependencies) add_dependencies(call_with, file);
    call_with.emplace_back(asked_.until == stop::assembly ? "-S" : looks ? "-fsyntax-only" : "-c");
    if (!w.language.empty()) call_with.insert(call_with.end(), {"-x", w.language});
    call_with.push_back(file);
    if (!looks) {
      call_with.emplace_back("-o");
      call_with.push_back(output_of(file));
    }
    if (const int code = compiler_.call(call_with); code != 0) code_ = code;
  }
}

int driver::link(const std::map<string, string>& objects, bool links) const {
  words call_with;
  if (std::ranges::any_of(asked_.sources(), [&](const string& file) { return !objects.contains(file); }))
    call_with.insert(call_with.end(), for_tasks.begin(), for_tasks.end());
  call_with.emplace_back("-I");
  call_with.push_back(compiler_.include().string());
  string said;  // by -x, which holds for what follows
  const auto say = [&](const string& language) {
    if (language != said) call_with.insert(call_with.end(), {"-x", language.empty() ? "none" : language});
    said = language;
  };
  for (const auto& w : asked_.words) {
    const bool made = w.what == kind::source && objects.contains(w.text[0]);
    if ((w.what == kind::source || w.what == kind::input) && w.is_file()) say(made ? string() : w.language);
    if (made) {
      call_with.push_back(objects.at(w.text[0]));
    } else {
      call_with.insert(call_with.end(), w.text.begin(), w.text.end());
    }
  }
  if (!asked_.output.empty()) {
    call_with.emplace_back("-o");
    call_with.push_back(asked_.output);
  }
  if (links) {
    say({});
    for (const string& w : compiler_.libraries()) call_with.push_back(w);
  }
  return compiler_.call(call_with);
}

}  // namespace orrery_cc
