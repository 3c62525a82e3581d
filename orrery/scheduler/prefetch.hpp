// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace orrery::scheduler {

/// Asks for cache lines from `from` on, to be written.
[[gnu::always_inline]] inline void fetch_lines(const void* from, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) __builtin_prefetch(static_cast<const std::byte*>(from) + i * 64, 1);
  asm volatile(
      "");  // GCC takes a function that does nothing but ask for memory for one without effects, and drops its calls
}

}  // namespace orrery::scheduler
