// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/short_turns.hpp>

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cstdint>

namespace orrery::scheduler {
namespace {

constexpr std::uint64_t least_turn_ns = 100'000;  // the least that the kernel takes

// As in <linux/sched/types.h>, whose sched_param clashes with that of <sched.h>.
struct attributes {
  std::uint32_t size = sizeof(attributes);
  std::uint32_t policy = 0;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime = 0;  // ns: for threads of these policies, the length of a turn
  std::uint64_t deadline = 0;
  std::uint64_t period = 0;
};

// 0: the kernel does not say, or the thread has no such turns.
std::uint64_t change_turn(std::uint64_t to) noexcept {
  attributes now;
  if (syscall(SYS_sched_getattr, 0, &now, sizeof now, 0) != 0) return 0;
  if (now.policy != SCHED_OTHER && now.policy != SCHED_BATCH) return 0;
  const std::uint64_t before = now.runtime;
  if (before == 0) return 0;
  now.size = sizeof now;
  now.runtime = to;
  return syscall(SYS_sched_setattr, 0, &now, 0) == 0 ? before : 0;
}

}  // namespace

short_turns::short_turns() noexcept : before_(change_turn(least_turn_ns)) {}

short_turns::~short_turns() {
  if (before_ != 0) (void)change_turn(before_);
}

}  // namespace orrery::scheduler
