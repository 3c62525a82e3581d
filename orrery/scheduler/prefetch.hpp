// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace orrery::scheduler {

/// Asks for cache lines from `from` on, to be written.
[[gnu::always_inline]] inline void fetch_lines(const void* from, std::size_t count) noexcept {
  // As a number: what is asked for need not be memory of one object, or be there at all.
  const auto at = reinterpret_cast<std::uintptr_t>(from);
  for (std::size_t i = 0; i < count; ++i) __builtin_prefetch(reinterpret_cast<const void*>(at + i * 64), 1);
  // GCC takes a function that does nothing but ask for memory for one without effects, and drops
  // its calls
  asm volatile("");
}

}  // namespace orrery::scheduler
