// SPDX-License-Identifier: Apache-2.0
// What a program does at its own peril: threads that are not to be had, destructors that throw, children of fork(). Each
// test starts this program again (--scenario=NAME and the runtime's options) and reads what it says.
#include "../support/scenario.hpp"

#include <chrono>
#include <fstream>
#include <stdexcept>
#include <vector>

#include <dlfcn.h>
#include <pthread.h>
#include <sys/resource.h>

namespace {
std::atomic<int> threads_left = 1'000'000;  // that can still be started
}

#if !defined(ORRERY_ASAN) && !defined(ORRERY_TSAN)
// Stands before that of the C library: root has no limit of threads that could be lowered.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*f)(void*), void* argument) {
  if (threads_left.fetch_sub(1) <= 0) return EAGAIN;
  using create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto real = reinterpret_cast<create>(::dlsym(RTLD_NEXT, "pthread_create"));
  return real(thread, attributes, f, argument);
}
#endif

namespace orrery::faults {
namespace {

using namespace testing;

// --- what runs in the worlds -------------------------------------------------------------------------------------------

[[gnu::noinline]] void find_no_way_out() { throw std::logic_error("no way out"); }

struct fragile {
  ~fragile() noexcept(false) {
    if (throws_) throw std::runtime_error("a file is still open");
  }
  void break_at_end() { throws_ = true; }
  void break_here() noexcept { find_no_way_out(); }
  bool throws_ = false;
};
ORRERY_PROCESS(fragile, break_at_end, break_here);

struct parent;
ORRERY_PROCESS(parent, fork_and_call, fork_and_return, fork_and_run, answer);
struct parent {
  // What the child says on its way out.
  int fork_and_call(remote<parent> other) {
    return status_of_child([other] {
      try {
        (void)other->answer();
        return 1;
      } catch (const usage_error& e) {
        return std::string_view(e.what()).find("fork()") != std::string_view::npos ? 42 : 2;
      }
    });
  }
  int fork_and_return() {
    const pid_t child = ::fork();
    if (child == 0) return 0;  // as if the child were this PE
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  int fork_and_run() {
    return status_of_child([] {
      char* words[] = {nullptr};
      try {
        return run(0, words, [] { return 1; });
      } catch (const usage_error&) {
        return 42;
      }
    });
  }
  int answer() { return 7; }

  template <class F>
  static int status_of_child(F&& f) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(f());
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
};

void destructor_throws() {
  const auto f = spawn<fragile>(pe(world_pes() - 1));
  f->break_at_end();
  destroy(f);
}
void method_throws() { spawn<fragile>(pe(world_pes() - 1))->break_here(); }

// The child must not leave the world in the name of its parent when the main function has returned there.
void main_in_a_child_of_fork() {
  const auto a = spawn<parent>(pe(world_pes() - 1));
  if (const pid_t child = ::fork(); child != 0) {
    int status = 0;
    ::waitpid(child, &status, 0);
    check(WIFEXITED(status) && WEXITSTATUS(status) == 1, "how the child ended");
    check(a->answer() == 7, "a call afterwards");
  }
}

void children_of_fork() {
  for (std::uint32_t p = 0; p < world_pes(); ++p) {
    const auto a = spawn<parent>(pe(p));
    const auto b = spawn<parent>(pe((p + 1) % world_pes()));
    check(a->fork_and_call(b) == 42, "a child could call a process");
    check(a->fork_and_call(a) == 42, "a child could call its own process");
    check(a->fork_and_return() == 1, "a child went on as a PE, or with what its caller does");
    check(a->fork_and_run() == 42, "a child could run a world");
    check(b->answer() == 7 && a->answer() == 7, "a call afterwards");
  }
}

struct patient {
  static void wait() { sleep_for(std::chrono::seconds{10}); }
};
ORRERY_PROCESS(patient, wait);

void leave_no_address_space() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlimit most{pages * 4096 + (512U << 20), RLIM_INFINITY};
  check(pages != 0 && ::setrlimit(RLIMIT_AS, &most) == 0, "the limit");
}
void methods_without_stacks() {
  leave_no_address_space();
  std::vector<future<void>> waits;
  for (int i = 0; i < 200; ++i) waits.push_back(start(spawn<patient>(here()))->wait());
  for (auto& w : waits) w.get();
}
void functions_without_stacks() {
  leave_no_address_space();
  for (int i = 0; i < 200; ++i) (void)spawn(here(), &patient::wait);
}

// --- the tests ---------------------------------------------------------------------------------------------------------

const std::vector<std::string> threads{"--orrery-pes=2"};
const std::vector<std::string> nodes{"--orrery-nodes=2", "--orrery-pes=1"};
const std::vector<std::string> simulated{"--orrery-sim=machines=2,pes=1"};

std::string said_by(const std::string& scenario, std::vector<std::string> options) {
  options.push_back("--scenario=" + scenario);
  return outcome_of(options);
}

TEST(limits, threads_that_cannot_be_started_are_named) {
  if (slowed_down) GTEST_SKIP() << "sanitizers start threads of their own";
  threads_left = 2;
  std::vector<std::string> words{"test", "--orrery-pes=8"};
  std::vector<char*> arguments;
  for (std::string& w : words) arguments.push_back(w.data());
  ::testing::internal::CaptureStderr();
  const int result = run(2, arguments.data(), [](const args&) { return 0; });
  const std::string said = ::testing::internal::GetCapturedStderr();
  threads_left = 1'000'000;
  EXPECT_EQ(result, 1);
  EXPECT_NE(said.find(" of the 8 PEs of node 0 can be started"), std::string::npos) << said;
  EXPECT_NE(said.find("ulimit -u"), std::string::npos) << said;
}

TEST(limits, stacks_without_address_space_end_the_program_with_a_line) {
  if (slowed_down) GTEST_SKIP() << "sanitizers take address space of their own";
  for (const std::string kind : {"method", "function"}) {
    const std::string said = said_by(kind + "s_without_stacks", {"--orrery-pes=1", "--orrery-" + kind + "-stack=16M"});
    EXPECT_EQ(count_of(said, "orrery: there is no address space for the stack of"), 1) << said;
    EXPECT_NE(said.find("ulimit -v"), std::string::npos) << said;
    EXPECT_NE(said.find("--orrery-" + kind + "-stack"), std::string::npos) << said;
  }
}

TEST(limits, a_destructor_that_throws_is_named_before_the_node_ends) {
  for (const auto& options : {threads, nodes, simulated}) {
    const std::string said = said_by("destructor", options);
    EXPECT_NE(said.find("orrery: PE 1: "), std::string::npos) << said;
    EXPECT_NE(said.find("fragile::(destructor) threw std::runtime_error: a file is still open"), std::string::npos)
        << said;
  }
}
TEST(limits, a_noexcept_method_that_throws_is_named_before_the_node_ends) {
  for (const auto& options : {threads, nodes}) {
    const std::string said = said_by("method", options);
    EXPECT_NE(said.find("fragile::break_here threw std::logic_error: no way out"), std::string::npos) << said;
  }
}

TEST(limits, a_child_of_fork_calls_nobody_and_is_no_pe) {
  for (const auto& options : {threads, nodes}) {
    const std::string said = said_by("fork", options);
    EXPECT_TRUE(said.ends_with("good")) << said;
    EXPECT_NE(said.find("a method has returned in a child"), std::string::npos) << said;
  }
}

TEST(limits, a_child_of_fork_in_main_ends_without_the_world) {
  for (const auto& options : {threads, nodes}) {
    const std::string said = said_by("main_fork", options);
    EXPECT_TRUE(said.ends_with("good")) << said;
  }
}

}  // namespace
}  // namespace orrery::faults

int main(int argc, char** argv) {
  using namespace orrery::faults;
  return orrery::testing::run_tests_or_scenario(argc, argv,
                                                {{"destructor", destructor_throws},
                                                 {"methods_without_stacks", methods_without_stacks},
                                                 {"functions_without_stacks", functions_without_stacks},
                                                 {"method", method_throws},
                                                 {"fork", children_of_fork},
                                                 {"main_fork", main_in_a_child_of_fork}});
}
