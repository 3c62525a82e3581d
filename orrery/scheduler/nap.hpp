// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace orrery::scheduler {

/// So many PEs are woken by who stops a node, and by the PE that is the last to come to a stage of
/// the end. They wake the others, two each. If one PE woke thousands, it would have to wait for its
/// turn on a core after each.
inline constexpr std::uint32_t woken_at_once = 64;

/// How long a PE that waits for the others sleeps while its node, which has so many PEs, ends. PEs
/// of other nodes come to their end without saying so, and a PE that never looks counts as one that
/// is inside a method (shutdown.cpp).
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
