// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/fiber_pool.hpp>

#include <orrery/scheduler/no_stack.hpp>

#include <new>

namespace orrery::scheduler {

// A method that parks has already told others of what it waits for, often by objects on its stack.
// To unwind it would leave them with nothing.
fiber& fiber_pool::new_loop() noexcept {
  try {
    return *make_fiber(method_stacks.allocate(), loop, owner);
  } catch (const std::bad_alloc&) {
    end_without_stack("another method", "--orrery-method-stack");
  }
}

}  // namespace orrery::scheduler
