// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>

namespace orrery::scheduler {

struct fiber;
struct slot;

/// A fiber that waits for a point in time.
struct timer {
  fiber* waiter;
  slot* process = nullptr;  ///< set if it waits in receive
  bool fired = false;
};

/// By deadline (CLOCK_MONOTONIC, ns).
class timer_queue : public std::multimap<std::int64_t, timer*> {};

}  // namespace orrery::scheduler
