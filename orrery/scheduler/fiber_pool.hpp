// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/fiber.hpp>
#include <orrery/scheduler/stack_sizes.hpp>

#include <cstdint>
#include <utility>

namespace orrery::scheduler {

/// The stacks of the PEs of one OS thread, and those of its loop fibers that have nothing to do: of
/// one PE, or of all those of a simulation, where a loop fiber belongs to no PE but serves
/// whichever is due.
struct fiber_pool {
  /// `loop(fiber, owner)` is what a loop fiber runs.
  fiber_pool(std::size_t method_stack, std::size_t function_stack, void (*loop_entry)(fiber&, void*), void* loop_owner)
      : loop(loop_entry), owner(loop_owner), method_stacks(method_stack), function_stacks(function_stack) {}

  /// A loop fiber; a new one if none is idle. Ends the program with a line where there is no memory
  /// for its stack.
  [[nodiscard]] fiber& take_loop() noexcept {
    if (idle == nullptr) return new_loop();
    fiber& f = *idle;
    idle = f.next;
    --idle_count;
    return f;
  }
  void lay_aside(fiber& f) noexcept {
    f.next = idle;
    idle = &f;
    ++idle_count;
  }
  /// The first step of every fiber when it runs again: frees the stack of one that has ended.
  void finish() {
    if (finished != nullptr) [[unlikely]]
      free_finished();
  }
  /// When none will run any more.
  void forget_idle() noexcept {
    while (idle != nullptr) forget_fiber(*std::exchange(idle, idle->next));
  }

  void (*loop)(fiber&, void*);
  void* owner;
  fiber* finished = nullptr;  ///< its stack is free once another one runs
  fiber* idle = nullptr;  ///< loops, the last that was laid aside first
  std::uint32_t idle_count = 0;
  stack_pool method_stacks;
  stack_sizes function_stacks;

 private:
  [[nodiscard]] fiber& new_loop() noexcept;
  void free_finished() {
    fiber* const f = std::exchange(finished, nullptr);
    const stack memory = f->memory;
    const bool is_loop = f->is_loop;
    forget_fiber(*f);
    if (is_loop) {
      method_stacks.release(memory);
    } else {
      function_stacks.release(memory);
    }
  }
};

}  // namespace orrery::scheduler
