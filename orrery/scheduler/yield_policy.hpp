// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace orrery::scheduler {

/// Whether a PE that shares its core with other PEs yields before it sleeps.
///
/// Problem: beside other idle PEs a yield costs a microsecond, less than to sleep and be woken. Beside somebody who
/// computes, it costs a turn of milliseconds, and the kernel counts each yield as a turn used up, so that PEs which hand
/// work to each other hardly run. Solution: after a long yield, the PE sleeps at once the next times, twice as often
/// after each further long yield. Owned and used by one PE.
class yield_policy {
 public:
  static constexpr std::uint32_t most_skipped = 1'024;

  /// True if the PE sleeps now without a yield.
  [[nodiscard]] bool skip() noexcept {
    if (left_ == 0) return false;
    --left_;
    return true;
  }
  void was_long() noexcept {
    next_ = std::min(next_ * 2, most_skipped);
    left_ = next_;
  }
  /// All yields before a sleep were short.
  void was_short() noexcept { next_ = std::max(next_ / 2, first_skipped); }

 private:
  static constexpr std::uint32_t first_skipped = 8;

  std::uint32_t left_ = 0;
  std::uint32_t next_ = first_skipped;
};

}  // namespace orrery::scheduler
