// SPDX-License-Identifier: Apache-2.0
// orrery-cc: compiles C with tasks and messages, and is used like cc. A source without them goes to the compiler as it is; others are preprocessed,
// translated, and compiled as preprocessed C.
#include <tools/orrery_cc/command_line.hpp>
#include <tools/orrery_cc/generator.hpp>
#include <tools/orrery_cc/parser.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

namespace fs = std::filesystem;
using namespace orrery_cc;
using std::string;
using words = std::vector<string>;
using kind = command_line::word::kind;
using stop = command_line::stop;

// A failure that was told of already, or has a line of its own.
struct failed {
  int code;
};
[[noreturn]] void give_up(const string& why) {
  std::fputs(fmt::format("orrery-cc: error: {}\n", why).c_str(), stderr);
  throw failed{1};
}

words split(const char* text) {
  words all;
  std::istringstream in(text != nullptr ? text : "");
  for (string w; in >> w;) all.push_back(w);
  return all;
}

string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) give_up(fmt::format("{} cannot be read", path.string()));
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<char*> pointers_to(words& all) {
  std::vector<char*> argv;
  for (string& w : all) argv.push_back(w.data());
  argv.push_back(nullptr);
  return argv;
}

// Folder of the files in between; gone at the end of its scope.
class scratch {
 public:
  scratch() {
    string pattern = (fs::temp_directory_path() / "orrery-cc-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) give_up(fmt::format("no folder can be made in {}", pattern));
    path_ = pattern;
  }
  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;
  ~scratch() { remove(); }
  void remove() const {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  [[nodiscard]] fs::path file(const string& name) const { return path_ / name; }

 private:
  fs::path path_;
};

class driver {
 public:
  explicit driver(command_line asked) : asked_(std::move(asked)) {
    // The compiler that it calls, and what it adds to all its calls: for builds with a sanitizer.
    compiler_ = split(std::getenv("ORRERY_CC"));
    if (compiler_.empty()) compiler_ = {"cc"};
    more_ = split(std::getenv("ORRERY_CC_FLAGS"));
    find_library();
  }

  int run() {
    if (asked_.emit_c) return emit();
    if (asked_.until != stop::preprocessed)
      for (const string& file : asked_.sources())
        if (auto c = translate(file)) translated_.emplace(file, std::move(*c));
    const bool links = asked_.until == stop::linked && needs_runtime();
    if (translated_.empty() && !links) become_compiler();
    return compile(links);
  }

 private:
  // In the build's folder the library lies beside this program, else where it was installed.
  void find_library() {
    const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
    if (fs::exists(here / "liborrery.a")) {
      library_ = here / "liborrery.a";
      include_ = ORRERY_CC_SOURCE_DIR;
    } else {
      library_ = here.parent_path() / ORRERY_CC_LIBDIR / "liborrery.a";
      include_ = here.parent_path() / "include";
    }
  }

  // `errors`: where it writes what it has to say; empty: to stderr.
  int call(const words& arguments, const fs::path& errors = {}) const {
    words all = compiler_;
    all.insert(all.end(), more_.begin(), more_.end());
    all.insert(all.end(), arguments.begin(), arguments.end());
    pid_t child = 0;
    posix_spawn_file_actions_t files;
    ::posix_spawn_file_actions_init(&files);
    if (!errors.empty())
      ::posix_spawn_file_actions_addopen(&files, STDERR_FILENO, errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (const int error = ::posix_spawnp(&child, all[0].c_str(), &files, nullptr, pointers_to(all).data(), environ))
      give_up(fmt::format("the C compiler '{}' cannot be run: {} (ORRERY_CC names another one)", all[0],
                          std::strerror(error)));
    ::posix_spawn_file_actions_destroy(&files);
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  }

  [[noreturn]] void become_compiler() const {
    words all = compiler_;
    all.insert(all.end(), more_.begin(), more_.end());
    if (fs::exists(include_ / "orrery" / "task.h")) {
      all.emplace_back("-I");
      all.push_back(include_.string());
    }
    all.insert(all.end(), asked_.all.begin(), asked_.all.end());
    work_.remove();
    ::execvp(all[0].c_str(), pointers_to(all).data());
    give_up(fmt::format("the C compiler '{}' cannot be run: {} (ORRERY_CC names another one)", all[0],
                        std::strerror(errno)));
  }

  // The object that a source becomes when nothing else is said.
  [[nodiscard]] string output_of(const string& file) const {
    if (asked_.until != stop::linked && !asked_.output.empty()) return asked_.output;
    return fs::path(file).stem().string() + (asked_.until == stop::assembly ? ".s" : ".o");
  }

  // The source as C; nothing if it has no tasks or messages. Throws failed, source_error.
  std::optional<string> translate(const string& file) {
    const fs::path out = work_.file("preprocessed.i");
    words call_with = asked_.options(true);
    for (const string& w : {string("-I"), include_.string(), string("-E"), file, string("-o"), out.string()})
      call_with.push_back(w);
    if (asked_.wants_dependencies) add_dependencies(call_with, file);
    // The compiler says again what it has to say of a source that is left to it.
    const fs::path errors = work_.file("errors");
    const int code = call(call_with, errors);
    const string said = read_file(errors);
    if (code != 0) {
      std::fputs(said.c_str(), stderr);
      throw failed{code};
    }
    const source from(read_file(out));
    const program found = parse(from);
    uses_runtime_ |= found.knows_runtime;
    if (found.is_plain_c()) return std::nullopt;
    std::fputs(said.c_str(), stderr);
    return generate(from, found, file);
  }

  void add_dependencies(words& to, const string& file) const {
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

  int emit() {
    string all;
    for (const string& file : asked_.sources()) {
      const auto c = translate(file);
      if (!c) give_up(fmt::format("{} has no task and no message; --emit-c has nothing to show", file));
      all += *c;
    }
    if (asked_.output.empty()) {
      std::fwrite(all.data(), 1, all.size(), stdout);
    } else {
      std::ofstream(asked_.output, std::ios::binary) << all;
    }
    return 0;
  }

  // Programs of objects need the library if one of these does.
  [[nodiscard]] bool needs_runtime() const {
    if (!translated_.empty() || uses_runtime_) return true;
    for (const string& file : asked_.inputs()) {
      std::ifstream in(file, std::ios::binary);
      const string bytes{std::istreambuf_iterator<char>(in), {}};
      if (bytes.find("orrery_run") != string::npos || bytes.find("orrery_send") != string::npos ||
          bytes.find("orrery_create") != string::npos)
        return true;
    }
    return false;
  }

  int compile(bool links) {
    std::map<string, string> objects;
    for (const auto& [file, c] : translated_) {
      const fs::path in = work_.file(fmt::format("{}.i", objects.size()));
      std::ofstream(in, std::ios::binary) << c;
      words call_with = asked_.options(false);
      for (const char* w : {"-fexceptions", "-x", "cpp-output"}) call_with.emplace_back(w);
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
      if (const int code = call(call_with); code != 0) return code;
    }
    return asked_.until == stop::linked ? link(objects, links) : compile_rest();
  }

  // The sources without tasks and messages of a call that does not link.
  int compile_rest() const {
    for (const string& file : asked_.sources()) {
      if (translated_.contains(file)) continue;
      words call_with = asked_.options(true);
      call_with.emplace_back("-I");
      call_with.push_back(include_.string());
      call_with.emplace_back(asked_.until == stop::assembly ? "-S"
                             : asked_.until == stop::syntax ? "-fsyntax-only"
                                                            : "-c");
      call_with.push_back(file);
      if (asked_.until != stop::syntax) {
        call_with.emplace_back("-o");
        call_with.push_back(output_of(file));
      }
      if (const int code = call(call_with); code != 0) return code;
    }
    return 0;
  }

  int link(const std::map<string, string>& objects, bool links) const {
    words call_with{"-I", include_.string()};
    for (const auto& w : asked_.words) {
      if (w.what == kind::source && objects.contains(w.text[0])) {
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
      call_with.push_back(library_.string());
      for (const string& w : split(ORRERY_CC_LIBRARIES)) call_with.push_back(w);
    }
    return call(call_with);
  }

  command_line asked_;
  words compiler_;
  words more_;
  fs::path library_;
  fs::path include_;
  scratch work_;
  std::map<string, string> translated_;
  bool uses_runtime_ = false;  // a source, translated or not, includes its header
};

}  // namespace

int main(int argc, char** argv) {
  try {
    return driver(parse_command_line(words(argv + 1, argv + argc))).run();
  } catch (const source_error& e) {
    std::fputs(e.what(), stderr);
    return 1;
  } catch (const failed& f) {
    return f.code;
  } catch (const std::exception& e) {
    std::fputs(fmt::format("orrery-cc: error: {}\n", e.what()).c_str(), stderr);
    return 1;
  }
}
