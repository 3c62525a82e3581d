// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/stack_sizes.hpp>

#include <bit>
#include <new>

namespace orrery::scheduler {

stack stack_sizes::larger(std::size_t bytes) {
  if (bytes > most) throw std::bad_alloc{};
  const std::size_t size = std::bit_ceil(bytes);
  return larger_.try_emplace(size, size).first->second.allocate();
}

void stack_sizes::release_larger(stack s) noexcept {
  for (auto& [size, pool] : larger_)
    if (pool.made(s)) return pool.release(s);
}

}  // namespace orrery::scheduler
