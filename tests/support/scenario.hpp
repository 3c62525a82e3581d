// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests in worlds of several OS processes: each test starts its own program again as the first node of a world (--scenario=NAME and the
// runtime's options). A scenario says on stderr what is wrong; then the program exits with 1, else with 0.

#include <orrery/orrery.hpp>
#include <orrery/process/roles.hpp>
#include <orrery/scheduler/sanitizers.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace orrery::testing {

using scheduler::slowed_down;
inline constexpr auto patience = std::chrono::seconds(60);  // nothing takes that long: the watchdog comes first

// --- inside a scenario -------------------------------------------------------------------------------------------------

inline std::atomic<int> failures = 0;

/// What hangs is ended by an alarm in the first node. A scenario that takes its time on a busy machine says now and then, there, that it
/// goes on; what the other nodes say of that is not heard.
inline void goes_on() {
  static const bool is_first = std::getenv("ORRERY_INTERNAL_JOIN") == nullptr;
  if (is_first) ::alarm(100);
}

inline void check(bool good, std::string_view what) {
  if (good) return;
  ++failures;
  fmt::print(stderr, "node {}: {}\n", this_node(), what);
}

/// In a handler: what the exception says.
inline std::string text_of_exception() {
  try {
    throw;
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "not a std::exception";
  }
}

/// What the exception that f throws says.
template <class Error, class F>
std::string thrown(std::string_view what, F&& f) {
  try {
    f();
    check(false, fmt::format("{}: nothing was thrown", what));
  } catch (const Error& e) {
    return e.what();
  } catch (...) {
    check(false, fmt::format("{}: another exception was thrown: {}", what, text_of_exception()));
  }
  return {};
}

inline void check_contains(std::string_view text, std::string_view part) {
  check(text.find(part) != std::string_view::npos, fmt::format("'{}' is not in: {}", part, text));
}

inline int own_pid() { return ::getpid(); }
inline void kill_own_node() { ::kill(::getpid(), SIGKILL); }

/// Returns when this PE knows that the node is gone.
inline void await_loss_of(std::uint32_t node) {
  try {
    for (;;) (void)call<&own_pid>(orrery::node(node));
  } catch (const node_lost&) {
  }
}

// --- inside a test -----------------------------------------------------------------------------------------------------

/// This program once more. It is killed at the end of its scope if it still runs.
class program {
 public:
  explicit program(std::vector<std::string> options, const std::string& file = "/proc/self/exe") {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
    posix_spawn_file_actions_t files;
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawn_file_actions_adddup2(&files, ends[1], STDERR_FILENO);
    std::string name = "test";
    options.push_back(fmt::format("--test={}", ::getpid()));
    // Most lose nodes, and messages with them, on purpose.
    if (std::ranges::none_of(options, [](const std::string& o) { return o.starts_with("--orrery-failed-exit"); }))
      options.emplace_back("--orrery-failed-exit=0");
    std::vector<char*> arguments{name.data()};
    for (std::string& o : options) arguments.push_back(o.data());
    arguments.push_back(nullptr);
    if (::posix_spawn(&pid_, file.c_str(), &files, nullptr, arguments.data(), environ) != 0) std::abort();
    ::posix_spawn_file_actions_destroy(&files);
    ::close(ends[1]);
    errors_ = ends[0];
  }
  program(const program&) = delete;
  program& operator=(const program&) = delete;
  ~program() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    ::close(errors_);
  }

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  /// Blocks until it says this line; what it said before.
  std::string hear(const std::string& line) {
    std::string all;
    std::string said;
    for (char c = 0; ::read(errors_, &c, 1) == 1;) {
      if (c != '\n') {
        said += c;
        continue;
      }
      if (said == line) return all;
      all += said + '\n';
      said.clear();
    }
    return all + said;
  }
  /// Blocks until it has said one more line.
  std::string hear_line() {
    std::string said;
    for (char c = 0; ::read(errors_, &c, 1) == 1 && c != '\n';) said += c;
    return said;
  }
  /// Until it and all nodes that it started have ended: what they said, and then how it ended: "good", "exit status 1" or "killed by
  /// signal 9".
  std::string end() {
    std::string said;
    std::array<char, 4096> bytes{};
    for (ssize_t n = 0; (n = ::read(errors_, bytes.data(), bytes.size())) > 0;)
      said.append(bytes.data(), static_cast<std::size_t>(n));
    int status = 0;
    ::waitpid(std::exchange(pid_, 0), &status, 0);
    if (WIFSIGNALED(status)) return said + fmt::format("killed by signal {}", WTERMSIG(status));
    if (WEXITSTATUS(status) != 0) return said + fmt::format("exit status {}", WEXITSTATUS(status));
    return said + "good";
  }

 private:
  pid_t pid_ = 0;
  int errors_ = -1;
};

inline std::string outcome_of(std::vector<std::string> options) { return program(std::move(options)).end(); }

inline std::string own_world() { return fmt::format("--orrery-world=test-{}", ::getpid()); }

inline int count_of(std::string_view text, std::string_view part) {
  int n = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string_view::npos; at += part.size()) ++n;
  return n;
}

/// A directory for the files of named worlds, gone at the end of the scope.
class scratch_directory {
 public:
  scratch_directory() {
    std::string pattern = "/dev/shm/orrery-test-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = pattern;
  }
  scratch_directory(const scratch_directory&) = delete;
  scratch_directory& operator=(const scratch_directory&) = delete;
  ~scratch_directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] std::string option() const { return "--orrery-shm-dir=" + path_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& f : std::filesystem::directory_iterator(path_)) names.push_back(f.path().filename().string());
    return names;
  }

 private:
  std::string path_;
};

using scenarios = std::map<std::string_view, std::function<void()>>;

/// For main: a scenario if one is asked for (twice if the first option is --again), else the tests.
inline int run_tests_or_scenario(int argc, char** argv, const scenarios& all, const roles& with = {}) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view a = argv[i];
    if (!a.starts_with("--scenario=")) continue;
    // The other nodes end with the first one; should they hang, too, later.
    ::alarm(1000);
    goes_on();
    // And what the test left behind; the other nodes see to it themselves.
    for (int k = 1; k < argc; ++k)
      if (argv[k] == fmt::format("--test={}", ::getppid())) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const auto run = [&] {
      const auto scenario = [&](const args&) {
        all.at(a.substr(11))();
        return failures == 0 ? 0 : 1;
      };
      return orrery::run(argc, argv, scenario, with);
    };
    if (std::string_view(argv[1]) != "--again") return run();
    const int first = run();
    return first != 0 ? first : run();
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

/// The scenarios of the files of a program, which have one main (main.cpp).
inline scenarios& scenarios_of_all_files() {
  static scenarios all;
  return all;
}

/// In a file without a main: its scenarios. No two files of a program may have one of the same name.
class scenarios_of_file {
 public:
  explicit scenarios_of_file(const scenarios& own) {
    for (const auto& [name, scenario] : own)
      if (!scenarios_of_all_files().emplace(name, scenario).second) {
        fmt::print(stderr, "two files of this program have a scenario '{}': give one of them another name\n", name);
        std::abort();
      }
  }
};

}  // namespace orrery::testing
