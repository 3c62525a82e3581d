// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/stack.hpp>

#include <cstddef>
#include <cstdint>

namespace orrery::scheduler {

struct activation;
struct room_wait;
struct sink;

/// The state of exceptions being handled that libstdc++ and libc++abi keep for each thread (Itanium
/// C++ ABI, 2.2.2). It belongs to the fiber: a process parked inside a `catch` block must find it
/// again.
struct exception_globals {
  void* caught = nullptr;
  unsigned int uncaught = 0;
};

/// A stack with a computation on it. Fibers are switched only between others of the same PE.
///
/// Owned by the PE whose pool the stack is from. The object itself lies at the top of its stack, so
/// that a blocked process costs one page and nothing else.
struct fiber {
  void* context = nullptr;  ///< where it stands while it does not run
  fiber* next = nullptr;         ///< in a free list or a list of waiters
  /// The fiber this one switched to last (where Boost.Context switches).
  fiber* to = nullptr;
  activation* active = nullptr;  ///< the innermost activation, while it does not run
  sink* waiting_on = nullptr;    ///< the call whose result it waits for, without a time limit
  room_wait* room = nullptr;     ///< the room in a mailbox that it waits for
  const char* waits_in = nullptr;  ///< what else it waits in, for reports: "barrier"
  exception_globals exceptions;
  stack memory;
  const std::byte* limit = nullptr;     ///< below this address calls are no longer run inline
  std::uint8_t is_loop : 1 = 1;         ///< runs the scheduler loop between methods
  std::uint8_t queued : 1 = 0;          ///< in the run queue
  std::uint8_t cancelled : 1 = 0;       ///< the runtime is ending: receive throws `stopped`
  std::uint8_t in_guard : 1 = 0;        ///< a guard of receive runs, in which nothing is received
#ifdef ORRERY_ASAN
  void* fake_stack = nullptr;
#endif
#ifdef ORRERY_TSAN
  void* tsan = nullptr;
#endif
};

/// Puts a fiber at the top of `memory` that will run `entry(fiber, argument)`; entry never returns.
fiber* make_fiber(stack memory, void (*entry)(fiber&, void*), void* argument) noexcept;

/// Describes the stack that the calling thread runs on as a fiber, so that it can be switched away
/// from.
void adopt_thread(fiber& root) noexcept;

/// Frees what a sanitizer keeps for a fiber that has ended.
void forget_fiber(fiber& f) noexcept;

/// Runs `to` until something switches back to `from`, the fiber that runs now. Saves and restores
/// the exception globals.
void switch_fiber(fiber& from, fiber& to) noexcept;

/// As switch_fiber, for a fiber that has ended.
[[noreturn]] void leave_fiber(fiber& from, fiber& to) noexcept;

}  // namespace orrery::scheduler
