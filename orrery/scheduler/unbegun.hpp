// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/fiber.hpp>
#include <orrery/scheduler/slot.hpp>
#include <orrery/scheduler/stack_sizes.hpp>

#include <cstdint>

namespace orrery::scheduler {

/// The callee of a process function that has not begun.
///
/// Problem: a stack costs its first page, and a fresh one a guard, some microseconds in all; a
/// function that never blocks needs it for as long as it runs. So a function gets a stack when it
/// begins, and it is mostly the warm one of the function that has ended before. Until then the
/// object in its slot is an `unbegun`, marked in the lowest bit of its address.
///
/// Owned by the slot; used on the PE's thread. Invariant: where an object is marked, its process
/// has never run.
struct unbegun {
  void (*entry)(fiber&, void*);
  void* argument;
  std::size_t stack_bytes;  ///< at least; 0: the usual size

  /// As the object of the slot. Throws std::bad_alloc.
  [[nodiscard]] static fiber* make(void (*entry)(fiber&, void*), void* argument, std::size_t stack_bytes) {
    auto* const made = new unbegun{entry, argument, stack_bytes};
    return reinterpret_cast<fiber*>(reinterpret_cast<std::uintptr_t>(made) | 1);
  }
  /// Null: the function has begun.
  [[nodiscard]] static unbegun* in(slot& s) noexcept {
    const auto bits = reinterpret_cast<std::uintptr_t>(s.object());
    return (bits & 1) != 0 ? reinterpret_cast<unbegun*>(bits & ~std::uintptr_t{1}) : nullptr;
  }
};

/// Gives the function a stack. No memory for it ends the program with a line.
[[nodiscard, gnu::noinline]] fiber& begin_fiber(slot& s, stack_sizes& stacks) noexcept;

/// The fiber of a process function, which is about to run; made now if it has not begun.
[[nodiscard]] inline fiber& fiber_of(slot& s, stack_sizes& stacks) noexcept {
  return unbegun::in(s) == nullptr ? *static_cast<fiber*>(s.object()) : begin_fiber(s, stacks);
}

}  // namespace orrery::scheduler
