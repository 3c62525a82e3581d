// SPDX-License-Identifier: Apache-2.0
// A PE whose methods take long looks at what comes from elsewhere between a few of them, not only
// when its run queue is empty. Counted in methods: time decides nothing here.
#include <orrery/orrery.hpp>
#include <orrery/process/internal/test_world.hpp>
#include <orrery/process/latch.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

namespace orrery {
namespace long_methods_tests {

using testing::in_world;

class Busy;
ORRERY_PROCESS(Busy, work, work_until_asked, give, ask);

/// Shared by the PEs of a node; SYNC: counts only, whose order the test does not need.
struct tally {
  std::atomic<bool> sent{false};
  std::atomic<bool> asked{false};
  std::atomic<int> after{0};  // pieces of work between the two
};
tally seen;

void busy_for_a_while() {
  const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(100);
  while (std::chrono::steady_clock::now() < until) {
  }
  if (seen.sent && !seen.asked) ++seen.after;
}

class Busy {
 public:
  void work() { busy_for_a_while(); }
  void work_until_asked() {
    while (!seen.asked) {
      busy_for_a_while();
      yield();
    }
  }
  /// Messages from the same PE: they are in mailboxes when it returns.
  void give(std::vector<remote<Busy>> to, int each) {
    for (int i = 0; i < each; ++i)
      for (const auto& b : to) post(b)->work();
  }
  void ask() { seen.asked = true; }
};

// The pieces of work that went before the answer of a PE that has much to do.
template <class Work>
int work_before_the_answer(const Work& give_work, std::uint32_t pes = 2) {
  int after = 0;
  in_world(pes, [&] {
    seen.sent = seen.asked = false;
    seen.after = 0;
    const auto asked = spawn<Busy>(pe(1));
    auto working = give_work();
    auto answer = start(asked)->ask();
    seen.sent = true;
    answer.get();
    after = seen.after;
    for (auto& w : working) w.get();
  });
  return after;
}

TEST(long_methods, one_that_yields_lets_messages_of_other_pes_in_at_its_next_yield) {
  const int after = work_before_the_answer([] {
    std::vector<future<void>> all;
    all.push_back(start(spawn<Busy>(pe(1)))->work_until_asked());
    return all;
  });
  EXPECT_LE(after, 3);
}

std::vector<future<void>> give(int processes, int each, std::uint32_t giver = 1) {
  std::vector<remote<Busy>> all;
  for (int i = 0; i < processes; ++i) all.push_back(spawn<Busy>(pe(1)));
  spawn<Busy>(pe(giver))->give(all, each);
  return {};
}

TEST(long_methods, a_process_with_many_messages_lets_others_have_their_turn) {
  EXPECT_LE(work_before_the_answer([] { return give(1, 500); }), 16 + 1);
}

TEST(long_methods, many_processes_let_messages_of_other_pes_in) {
  EXPECT_LE(work_before_the_answer([] { return give(200, 1); }), 16 + 1);
}

TEST(long_methods, records_of_one_pe_let_those_of_another_in) {
  EXPECT_LE(work_before_the_answer([] { return give(1, 500, 2); }, 3), 2 * 16 + 1);
}

// Which give way to each other without the loop of the PE.
void wait_and_work(remote<latch> begin) {
  begin->wait();
  busy_for_a_while();
  sleep_for(std::chrono::microseconds(1));
}

TEST(long_methods, functions_that_go_on_after_a_wait_let_messages_of_other_pes_in) {
  EXPECT_LE(work_before_the_answer([] {
              const auto begin = spawn<latch>(pe(1), 1);
              std::vector<future<void>> all;
              for (int i = 0; i < 200; ++i) all.push_back(start_call<&wait_and_work>(pe(1), begin));
              begin->count_down();
              return all;
            }),
            2 * 16 + 1);
}

TEST(long_methods, many_processes_with_many_messages_let_others_have_their_turn) {
  EXPECT_LE(work_before_the_answer([] { return give(100, 20); }), 16 * 20 + 1);
}

}  // namespace long_methods_tests
}  // namespace orrery
