// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/no_stack.hpp>
#include <orrery/scheduler/unbegun.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <new>

namespace orrery::scheduler {

namespace {

stack stack_from(stack_sizes& stacks, std::size_t bytes) noexcept {
  try {
    return stacks.allocate(bytes);
  } catch (const std::bad_alloc&) {
    end_without_stack("a process function", "--orrery-function-stack");
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
