// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/fiber_pool.hpp>

#include <cstdio>
#include <cstdlib>
#include <new>

namespace orrery::scheduler {

// A method that parks has already told others of what it waits for, often by objects on its stack.
// To unwind it would leave them with nothing.
fiber& fiber_pool::new_loop() noexcept {
  try {
    return *make_fiber(method_stacks.allocate(), loop, owner);
  } catch (const std::bad_alloc&) {
    std::fputs(
        "orrery: there is no address space for the stack of another method: have fewer of them wait at a time, raise "
        "the limits (ulimit -v, vm.max_map_count), or have smaller stacks (--orrery-method-stack)\n",
        stderr);
    std::abort();
  }
}

}  // namespace orrery::scheduler
