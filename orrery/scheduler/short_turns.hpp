// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace orrery::scheduler {

/// While it lives, the calling thread asks the kernel for turns of 100 us instead of its usual 1 to
/// 3 ms.
///
/// PEs wait for each other. Where a core has other work, too (more PEs than cores, a build, a
/// neighbour that computes), each such wait lasts for a turn of somebody else, and who yields goes
/// to the end of the queue by a turn of his own. With short turns the kernel gives a PE the same
/// share of the core, in smaller pieces and sooner. Where a core has nothing else to do this
/// changes nothing.
///
/// Linux 6.12 and later know turns of a thread's own; elsewhere, and for threads of other policies
/// than SCHED_OTHER and SCHED_BATCH, nothing happens.
class short_turns {
 public:
  short_turns() noexcept;
  ~short_turns();  ///< The turns are as before.
  short_turns(const short_turns&) = delete;
  short_turns& operator=(const short_turns&) = delete;

 private:
  unsigned long long before_ = 0;  // ns; 0: nothing was changed
};

}  // namespace orrery::scheduler
