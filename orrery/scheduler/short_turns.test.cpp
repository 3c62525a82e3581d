// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/short_turns.hpp>

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <array>
#include <cstdint>
#include <thread>

namespace orrery::scheduler {
namespace short_turns_tests {

// The length of the calling thread's turns as the kernel says it; 0: it does not.
std::uint64_t turn_of_this_thread() {
  std::array<std::uint64_t, 6> attributes{};  // struct sched_attr up to its deadline
  if (syscall(SYS_sched_getattr, 0, attributes.data(), 48, 0) != 0) return 0;
  return attributes[3];
}

TEST(short_turns, last_as_long_as_the_object) {
  std::thread([] {  // not this one: another test may run in it
    const std::uint64_t before = turn_of_this_thread();
    if (before == 0) GTEST_SKIP() << "this kernel does not know turns of a thread's own";
    {
      const short_turns turns;
      EXPECT_EQ(turn_of_this_thread(), 100'000u);
    }
    EXPECT_EQ(turn_of_this_thread(), before);
  })
      .join();
}

TEST(short_turns, leave_threads_of_other_policies_alone) {
  std::thread([] {
    const sched_param none{};
    if (sched_setscheduler(0, SCHED_IDLE, &none) != 0) GTEST_SKIP() << "this thread cannot change its policy";
    const std::uint64_t before = turn_of_this_thread();
    {
      const short_turns turns;
      EXPECT_EQ(sched_getscheduler(0), SCHED_IDLE);
      EXPECT_EQ(turn_of_this_thread(), before);
    }
    EXPECT_EQ(sched_getscheduler(0), SCHED_IDLE);
  }).join();
}

}  // namespace short_turns_tests
}  // namespace orrery::scheduler
