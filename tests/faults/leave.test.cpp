// SPDX-License-Identifier: Apache-2.0
// Programs that leave a named world while their PEs are at work, as others send to them and take their place. Each test
// starts this program several times (--scenario=NAME and the runtime's options).
#include "../support/scenario.hpp"

#include <fstream>

#include <sched.h>

namespace orrery::faults {
namespace leave_tests {

using namespace testing;

// A file whose existence says to other programs that something has happened, next to the world's own file.
std::string flag_file(const std::string& name) {
  const std::string dir = std::getenv("ORRERY_TEST_FLAGS");  // NOLINT(concurrency-mt-unsafe): set before all threads
  return dir + '/' + name;
}
void raise_flag(const std::string& name) { std::ofstream{flag_file(name)}.put('\n'); }
void await_flag(const std::string& name) {
  while (!std::filesystem::exists(flag_file(name))) ::sched_yield();
}

std::atomic<bool> is_busy = false;
std::atomic<int> ran = 0;
std::atomic<bool> is_second = false;

struct worker {
  void f() {
    ++ran;
    if (!is_second) check(false, "a message for the program that came later was run by the one that left");
  }
  int count() { return ran; }
  void keep_busy(std::string until) {
    is_busy = true;
    await_flag(until);
  }
  void take(std::vector<char> bytes) { ran += static_cast<int>(bytes.size()); }
};
ORRERY_PROCESS(worker, f, count, keep_busy, take);

constexpr int messages = 40;

// Waits until the programs that have joined are about to leave or have left.
void await_departures() {
  while (reachable_pes().size() > 1) yield();
}

void host_of_two() {
  fmt::print(stderr, "up\n");
  const auto first = await_name<worker>("/first", patience);
  check(first->count() == 0, "the first program has run something");
  publish("/seen", spawn<worker>(here()));
  raise_flag("published");
  await_departures();
  fmt::print(stderr, "left\n");
  const auto second = await_name<worker>("/second", patience);
  for (int i = 0; i < messages; ++i) post(second)->f();
  const int there = second->count();
  check(there == messages,
        fmt::format("{} of {} messages were run by the program that they were for", there, messages));
  raise_flag("sent");  // the first program's PE looks at its rings again
  await_flag("first is out");
  publish("/done", spawn<worker>(here()));
  await_departures();
}

// Its main function returns while the other PE is in a method, which has a ring from the host.
void first_leaver() {
  const auto w = spawn<worker>(pe(this_pe() + 1));
  publish("/first", w);
  (void)await_name<worker>("/seen", patience);
  // The PE that will be busy may keep the name, and must have answered who publishes it.
  while (!std::filesystem::exists(flag_file("published"))) yield();
  post(w)->keep_busy("sent");
  while (!is_busy) yield();
}

void second_comer() {
  is_second = true;
  publish("/second", spawn<worker>(pe(this_pe() + 1)));
  (void)await_name<worker>("/done", patience);
}

std::atomic<int> notes = 0;
void note() { ++notes; }
int noted() { return notes; }
void keep_busy_until_a_guest_leaves() {
  await_flag("sent");
  while (reachable_pes().size() != 2) ::sched_yield();
}

void busy_host() {
  const auto busy = start_call<&keep_busy_until_a_guest_leaves>(pe(1));
  fmt::print(stderr, "up\n");
  const auto deadline = now() + patience / 2;
  while (call<&noted>(pe(1)) < messages && now() < deadline) yield();
  check(call<&noted>(pe(1)) == messages, "messages of a program that has left were lost");
}

// Nothing of it has been read when its main function returns.
void hasty_guest() {
  for (int i = 0; i < messages; ++i) post_call<&note>(pe(1));
  raise_flag("sent");
}

class leave : public ::testing::Test {
 protected:
  leave() { ::setenv("ORRERY_TEST_FLAGS", files.path().c_str(), 1); }  // NOLINT(concurrency-mt-unsafe)
  scratch_directory files;
};

TEST_F(leave, while_a_pe_is_busy_keeps_what_that_pe_may_read) {
  program host({"--scenario=host_of_two", own_world(), "--orrery-pes=1"});
  host.hear("up");
  program first({"--scenario=first_leaver", own_world(), "--orrery-pes=2"});
  host.hear("left");
  program second({"--scenario=second_comer", own_world(), "--orrery-pes=2"});
  EXPECT_EQ(first.end(), "good");
  std::ofstream{files.path() + "/first is out"}.put('\n');
  EXPECT_EQ(second.end(), "good");
  EXPECT_EQ(host.end(), "good");
}

TEST_F(leave, at_once_loses_no_message_that_was_sent_before) {
  program host({"--scenario=busy_host", own_world(), "--orrery-pes=2"});
  host.hear("up");
  EXPECT_EQ(outcome_of({"--scenario=hasty_guest", own_world(), "--orrery-pes=1"}), "good");
  EXPECT_EQ(host.end(), "good");
}

const orrery::testing::scenarios_of_file of_this({{"host_of_two", host_of_two},
                                                  {"first_leaver", first_leaver},
                                                  {"second_comer", second_comer},
                                                  {"busy_host", busy_host},
                                                  {"hasty_guest", hasty_guest}});

}  // namespace leave_tests
}  // namespace orrery::faults
