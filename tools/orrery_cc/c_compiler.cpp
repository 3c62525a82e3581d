// SPDX-License-Identifier: Apache-2.0
#include <tools/orrery_cc/c_compiler.hpp>
#include <tools/orrery_cc/failure.hpp>
#include <tools/orrery_cc/interruption.hpp>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace orrery_cc {

namespace fs = std::filesystem;
using std::string;

namespace {

c_compiler::words split(const char* text) {
  c_compiler::words all;
  std::istringstream in(text != nullptr ? text : "");
  for (string w; in >> w;) all.push_back(w);
  return all;
}

std::vector<char*> pointers_to(c_compiler::words& all) {
  std::vector<char*> argv;
  for (string& w : all) argv.push_back(w.data());
  argv.push_back(nullptr);
  return argv;
}

[[noreturn]] void cannot_run(const string& compiler, int error) {
  give_up(fmt::format("the C compiler '{}' cannot be run: {} (ORRERY_CC names another one)", compiler,
                      std::strerror(error)));
}

}  // namespace

void give_up(const string& why) {
  std::fputs(fmt::format("orrery-cc: error: {}\n", why).c_str(), stderr);
  throw failed{1};
}

c_compiler::c_compiler() : compiler_(split(std::getenv("ORRERY_CC"))), more_(split(std::getenv("ORRERY_CC_FLAGS"))) {
  if (compiler_.empty()) compiler_ = {"cc"};
  const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
  if (fs::exists(here / "liborrery.a")) {
    library_ = here / "liborrery.a";
    include_ = ORRERY_CC_SOURCE_DIR;
  } else {
    library_ = here.parent_path() / ORRERY_CC_LIBDIR / "liborrery.a";
    include_ = here.parent_path() / "include";
  }
}

c_compiler::words c_compiler::with(const words& arguments) const {
  words all = compiler_;
  all.insert(all.end(), more_.begin(), more_.end());
  all.insert(all.end(), arguments.begin(), arguments.end());
  return all;
}

void c_compiler::give_stdin(const fs::path& file) {
  const int in = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (in < 0 || ::dup2(in, STDIN_FILENO) < 0) give_up(fmt::format("{}: {}", file.string(), std::strerror(errno)));
  ::close(in);
  rewinds_stdin_ = true;
}

int c_compiler::call(const words& arguments, const fs::path& errors) const {
  check_interruption();
  words all = with(arguments);
  if (rewinds_stdin_) ::lseek(STDIN_FILENO, 0, SEEK_SET);
  pid_t child = 0;
  posix_spawnattr_t group;  // of its own, so that an interruption reaches what it starts
  ::posix_spawnattr_init(&group);
  ::posix_spawnattr_setflags(&group, POSIX_SPAWN_SETPGROUP);
  ::posix_spawnattr_setpgroup(&group, 0);
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  if (!errors.empty())
    ::posix_spawn_file_actions_addopen(&files, STDERR_FILENO, errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  const int error = ::posix_spawnp(&child, all[0].c_str(), &files, &group, pointers_to(all).data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  ::posix_spawnattr_destroy(&group);
  if (error != 0) cannot_run(all[0], error);
  const int status = wait_for_group(child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

void c_compiler::become(const words& arguments) const {
  words all = with(arguments);
  if (rewinds_stdin_) ::lseek(STDIN_FILENO, 0, SEEK_SET);
  ::execvp(all[0].c_str(), pointers_to(all).data());
  cannot_run(all[0], errno);
}

c_compiler::words c_compiler::libraries() const {
  words all = split(ORRERY_CC_LIBRARIES);
  all.insert(all.begin(), library_.string());
  return all;
}

}  // namespace orrery_cc
