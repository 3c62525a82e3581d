// SPDX-License-Identifier: Apache-2.0
// Signals and exit in programs with tasks; see support/scenario.hpp.
#include <orrery/task/task.h>
#include <orrery/orrery.hpp>

#include "../support/scenario.hpp"

#include <csignal>
#include <cstdlib>

namespace {

using orrery::testing::check;

int run_as_task(void (*body)(void*, std::size_t)) {
  orrery_task t{};
  check(orrery_create(body, nullptr, 0, orrery_here(), &t) == ORRERY_OK, orrery_error());
  check(orrery_join(t, ORRERY_FOREVER) == ORRERY_OK, orrery_error());
  return 0;
}

void waits(void*, std::size_t) {
  orrery_message m;
  check(orrery_receive(&m, ORRERY_FOREVER) == ORRERY_OK, "a message sent before the signal is not received");
  orrery_release(&m);
  check(orrery_receive(&m, ORRERY_FOREVER) == ORRERY_STOPPED, "the signal does not end the wait");
}

void stops(void*, std::size_t) {
  orrery_task t{};
  check(orrery_create(waits, nullptr, 0, orrery_pe(orrery_pes() - 1), &t) == ORRERY_OK, orrery_error());
  check(orrery_stop_on_signal(SIGKILL, t) == ORRERY_USAGE, "SIGKILL cannot be caught");
  check(orrery_stop_on_signal(SIGINT, {}) == ORRERY_USAGE, "no task");
  check(orrery_stop_on_signal(SIGINT, t) == ORRERY_OK, orrery_error());
  check(orrery_send_bytes(t, 1, "", 0, ORRERY_WAIT) == ORRERY_OK, orrery_error());
  check(orrery_sleep(1'000'000) == ORRERY_OK, orrery_error());
  ::kill(::getpid(), SIGINT);
  check(orrery_join(t, ORRERY_FOREVER) == ORRERY_OK, orrery_error());
}

// The second one does what it had done before.
void twice(void*, std::size_t) {
  check(std::signal(SIGINT, SIG_DFL) != SIG_ERR, "signal");  // shells have background jobs ignore it
  stops(nullptr, 0);
  ::kill(::getpid(), SIGINT);
  (void)orrery_sleep(ORRERY_FOREVER);
}

// Also if that was a handler of the program's own, and for another task.
volatile std::sig_atomic_t signals_of_its_own = 0;
void own_handler(void*, std::size_t) {
  check(std::signal(SIGINT, [](int) { signals_of_its_own = signals_of_its_own + 1; }) != SIG_ERR, "signal");
  for (int i = 0; i < 2; ++i) {
    stops(nullptr, 0);
    check(signals_of_its_own == i, "the first signal is for the task");
    ::kill(::getpid(), SIGINT);
    check(signals_of_its_own == i + 1, "the second one is the program's own");
  }
}

void exits(void*, std::size_t) {
  std::atexit([] { fmt::print(stderr, "atexit\n"); });
  std::exit(3);
}

void exits_when_told(void*, std::size_t) {
  orrery_message m;
  if (orrery_receive(&m, ORRERY_FOREVER) == ORRERY_OK) exits(nullptr, 0);
}

void exits_there(void*, std::size_t) {
  orrery_task t{};
  check(orrery_create(exits_when_told, nullptr, 0, orrery_node(1), &t) == ORRERY_OK, orrery_error());
  check(orrery_send_bytes(t, 1, "", 0, ORRERY_WAIT) == ORRERY_OK, orrery_error());
  check(orrery_join(t, ORRERY_FOREVER) == ORRERY_NODE_LOST, "the loss of the node is not told");
}

std::string outcome(std::string_view scenario, std::string_view world) {
  return orrery::testing::outcome_of({fmt::format("--scenario={}", scenario), std::string(world)});
}

TEST(a_signal, ends_the_task_that_was_named_and_then_the_program) {
  EXPECT_EQ(outcome("stops", "--orrery-pes=1"), "good");
  EXPECT_EQ(outcome("stops", "--orrery-pes=2"), "good");
  EXPECT_EQ(outcome("twice", "--orrery-pes=1"), "killed by signal 2");
  EXPECT_EQ(outcome("own_handler", "--orrery-pes=1"), "good");
}

// What is on the stack of a task when it calls exit is nobody's: LeakSanitizer would say so.
class exit_in_a_task : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* const options = std::getenv("ASAN_OPTIONS");
    ::setenv("ASAN_OPTIONS", fmt::format("{}:detect_leaks=0", options != nullptr ? options : "").c_str(), 1);
  }
};
TEST_F(exit_in_a_task, ends_its_os_process_as_in_every_program) {
  EXPECT_EQ(outcome("exits", "--orrery-pes=2"), "atexit\nexit status 3");
}

TEST_F(exit_in_a_task, of_another_node_is_a_loss_for_the_others) {
  const std::string said = outcome("exits_there", "--orrery-nodes=2");
  EXPECT_TRUE(said.contains("atexit\n") && said.ends_with("good")) << said;
  // A node that ends before the other one has begun to watch it leaves no status behind.
  EXPECT_TRUE(said.contains("exited with status 3") || said.contains("ended without leaving the world")) << said;
}

}  // namespace

int main(int argc, char** argv) {
  return orrery::testing::run_tests_or_scenario(argc, argv,
                                                {{"stops", [] { run_as_task(stops); }},
                                                 {"twice", [] { run_as_task(twice); }},
                                                 {"own_handler", [] { run_as_task(own_handler); }},
                                                 {"exits", [] { run_as_task(exits); }},
                                                 {"exits_there", [] { run_as_task(exits_there); }}});
}
