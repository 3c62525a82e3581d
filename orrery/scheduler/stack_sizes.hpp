// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/stack.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstddef>
#include <cstdint>

namespace orrery::scheduler {

/// The stacks of process functions of one PE, of several sizes.
///
/// Problem: one function in a million needs more stack than the others, be it for a library that it
/// calls, and its size for all of them would waste address space and cache. So nearly all stacks
/// are of the usual size, from one pool; sizes that were asked for are rounded up to powers of two,
/// and each has a pool.
///
/// Owned by the PE's fiber_pool, used on its thread. Invariant: a stack goes back to the pool that
/// it is from.
///
///     stack s = stacks.allocate(1 << 20);
///     stacks.release(s);
class stack_sizes {
 public:
  /// The largest stack that can be asked for.
  static constexpr std::size_t most = std::size_t{1} << 30;

  explicit stack_sizes(std::size_t usual_bytes) noexcept : usual_(usual_bytes) {}

  /// A stack with so many usable bytes, at most `most`, or of the usual size if that is more.
  /// Throws std::bad_alloc.
  [[nodiscard]] stack allocate(std::size_t bytes) {
    if (bytes <= usual_.usable_bytes()) [[likely]]
      return usual_.allocate();
    return larger(bytes);
  }
  void release(stack s) noexcept {
    if (usual_.made(s)) [[likely]] {
      usual_.release(s);
    } else {
      release_larger(s);
    }
  }

 private:
  [[nodiscard, gnu::noinline]] stack larger(std::size_t bytes);
  [[gnu::noinline]] void release_larger(stack s) noexcept;

  stack_pool usual_;
  wire::unique_ptr<stack_pool> larger_[31];  // by the binary logarithm of the size, a power of two
};

}  // namespace orrery::scheduler
