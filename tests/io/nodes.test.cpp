// SPDX-License-Identifier: Apache-2.0
// I/O in worlds of several nodes, where doorbells lie in shared memory. Each test starts this program again as the first
// node of a world (--scenario and the runtime's options); it exits with 0 if all is well, and a lost wake-up hangs.
#include <orrery/orrery.hpp>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace orrery;

// --- what runs in the worlds ----------------------------------------------------------------------------------------

constexpr int rounds = 200;

// Waits, in the kernel, for longer than a PE spins: whoever has nothing else to do is asleep by then.
void wait_until_others_sleep() {
  const io::descriptor clock(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
  const itimerspec soon{.it_interval = {}, .it_value = {.tv_sec = 0, .tv_nsec = 300'000}};
  timerfd_settime(clock.get(), 0, &soon, nullptr);
  std::uint64_t ticks = 0;
  (void)io::read(clock.get(), std::as_writable_bytes(std::span(&ticks, 1)));
}

// Reads from a pipe into which nobody writes, as long as the program runs.
void wait_for_ever() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) std::abort();
  const io::descriptor out(ends[0]);
  const io::descriptor in(ends[1]);
  std::array<std::byte, 1> b{};
  (void)io::read(out.get(), b);
}

struct counter {
  int n = 0;
  int next() { return ++n; }
  int next_after_a_while() {
    wait_until_others_sleep();
    return ++n;
  }
};
ORRERY_PROCESS(counter, next, next_after_a_while);

int call_those_that_sleep(const args&) {
  std::vector<remote<counter>> all;
  for (std::uint32_t i = 0; i < world_pes(); ++i) {
    (void)spawn(pe(i), &wait_for_ever);
    all.push_back(spawn<counter>(pe(i)));
  }
  for (int i = 1; i <= rounds; i += 2) {
    wait_until_others_sleep();
    for (const auto& c : all)
      if (c->next() != i) return 1;
    for (const auto& c : all)
      if (c->next_after_a_while() != i + 1) return 1;
  }
  return 0;
}

// --- the tests --------------------------------------------------------------------------------------------------------

int outcome(std::vector<std::string> options) {
  options.insert(options.begin(), "io.nodes.test");
  options.emplace_back("--scenario");
  std::vector<char*> arguments;
  for (std::string& o : options) arguments.push_back(o.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  if (posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, arguments.data(), environ) != 0) return -1;
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

class io_nodes : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { setenv("ORRERY_IO", GetParam(), 1); }
  void TearDown() override { unsetenv("ORRERY_IO"); }
};
INSTANTIATE_TEST_SUITE_P(back_ends, io_nodes, ::testing::Values("uring", "threads"));

TEST_P(io_nodes, that_wait_for_data_hear_calls_from_other_nodes) {
  EXPECT_EQ(outcome({"--orrery-nodes=2", "--orrery-pes=1"}), 0);
}
TEST_P(io_nodes, with_more_pes_than_cores_hear_calls_from_other_nodes) {
  EXPECT_EQ(outcome({"--orrery-nodes=3", "--orrery-pes=2"}), 0);
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i)
    if (std::string_view(argv[i]) == "--scenario") return run(argc, argv, call_those_that_sleep);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
