// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace orrery::scheduler {

/// How long a PE that waits for the others sleeps while its node, which has so many PEs, ends. When
/// all have come to a stage, they wake each other. But PEs of other nodes come without saying so,
/// and a PE that never looks counts as one that is inside a method (shutdown.cpp).
///
/// A look costs some 50 us of a core. So all PEs together take half a core, and of a thousand and
/// more each PE takes ever less: else they would keep those from the cores that still work.
[[nodiscard]] constexpr std::int64_t shutdown_nap_ns(std::uint32_t pes) noexcept {
  constexpr std::int64_t least = 500'000;
  constexpr std::int64_t each = 30'000;
  constexpr std::int64_t many = 1024;
  const std::int64_t n = pes;
  return n <= many ? std::max(least, n * each) : n * n / many * each;
}

}  // namespace orrery::scheduler
