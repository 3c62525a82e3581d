// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/sanitizers.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace orrery::scheduler {

/// One stack: `bottom` is the lowest usable byte, `top` one past the highest. Below `bottom` lies a
/// guard.
struct stack {
  std::byte* bottom = nullptr;
  std::byte* top = nullptr;
};

/// The stacks of one size of one PE.
///
/// Problem: a million blocked processes need a million stacks. A mapping for each would exceed
/// vm.max_map_count, and a page more than is touched would cost 4 GiB. So stacks are cut from large
/// lazily backed mappings; each has its guard installed by MADV_GUARD_INSTALL, which needs no
/// mapping of its own (Linux 6.13; before that by mprotect as long as the kernel has mappings left,
/// and then without, said once). Stacks that come back are reused last in, first out; of those that
/// lie idle only the most recent keep their pages.
///
/// Neighbours do not lie at the same offset of a page, nor a power of two apart: the hot end of a
/// thousand stacks would else fall into one set of every cache.
///
/// Owned by one PE, used by its thread only; lives as long as the PE.
class stack_pool {
 public:
  explicit stack_pool(std::size_t usable_bytes) noexcept;
  stack_pool(const stack_pool&) = delete;
  stack_pool& operator=(const stack_pool&) = delete;
  ~stack_pool();

  /// Throws std::bad_alloc if the address space is exhausted.
  [[nodiscard]] stack allocate();
  void release(stack s) noexcept;

  [[nodiscard]] std::size_t usable_bytes() const noexcept { return usable_; }
  /// True of a stack of this size.
  [[nodiscard]] bool made(const stack& s) const noexcept;

 private:
  struct chunk {
    std::byte* begin;
    std::size_t bytes;
  };
  void grow();

  std::size_t usable_;
  std::size_t stride_;
  std::size_t hot_;  // idle stacks that keep their pages
  std::vector<chunk> chunks_;
  std::byte* next_ = nullptr;
  std::byte* end_ = nullptr;
  std::uint32_t carved_ = 0;
  std::vector<stack> free_;
};

/// True if the address lies in the guard of a stack of any pool: what the SIGSEGV handler asks.
/// Async-signal-safe.
[[nodiscard]] bool in_stack_guard(const void* address) noexcept;

}  // namespace orrery::scheduler
