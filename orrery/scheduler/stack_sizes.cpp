// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/stack_sizes.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <bit>
#include <new>

namespace orrery::scheduler {

stack stack_sizes::larger(std::size_t bytes) {
  if (bytes > most) throw std::bad_alloc{};
  const std::size_t size = std::bit_ceil(bytes);
  wire::unique_ptr<stack_pool>& pool = larger_[std::countr_zero(size)];
  if (pool == nullptr) pool = wire::make_unique<stack_pool>(size);
  return pool->allocate();
}

void stack_sizes::release_larger(stack s) noexcept {
  for (const auto& pool : larger_)
    if (pool != nullptr && pool->made(s)) return pool->release(s);
}

}  // namespace orrery::scheduler
