// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/handler.hpp>

namespace orrery::scheduler {

struct delivery;
struct fiber;
struct slot;

/// A method, remote function or process function that runs or is parked; it lies on the stack that
/// runs it.
struct activation {
  slot* process;
  const handler* method;  ///< null for a constructor run inline, or a process function
  activation* below;      ///< the caller's, when this one was called inline
  /// The message, of which who waits is known; null if called inline.
  const delivery* serving = nullptr;
  fiber* on = nullptr;                       ///< set while it is parked
};

}  // namespace orrery::scheduler
