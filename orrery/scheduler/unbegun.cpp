// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/unbegun.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstdio>
#include <cstdlib>
#include <new>

namespace orrery::scheduler {

namespace {

stack stack_from(stack_sizes& stacks, std::size_t bytes) noexcept {
  try {
    return stacks.allocate(bytes);
  } catch (const std::bad_alloc&) {
    std::fputs(
        "orrery: there is no address space for the stack of a process function: have fewer of them wait at a time, "
        "or raise the limits (ulimit -v, vm.max_map_count)\n",
        stderr);
    std::abort();
  }
}

}  // namespace

fiber& begin_fiber(slot& s, stack_sizes& stacks) noexcept {
  const wire::unique_ptr<unbegun> begins(unbegun::in(s));
  fiber* const f = make_fiber(stack_from(stacks, begins->stack_bytes), begins->entry, begins->argument);
  f->is_loop = 0;
  s.set_object(f);
  return *f;
}

}  // namespace orrery::scheduler
