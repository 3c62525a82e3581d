// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>

namespace orrery::transport {

/// How far the clock of another rank is from the own one.
///
/// Problem: a trace of several machines has times of several clocks, and an effect must not be
/// drawn before its cause. So ranks tell each other their clocks in rounds of all-gathers. No rank
/// begins a round before all have begun the one before: what the other rank tells in a round, it
/// has read after this one began the last round, and before this one has ended this round. The
/// round in which these two times are closest tells most.
///
/// A value. Used by one thread.
class clock_comparison {
 public:
  struct estimate {
    std::int64_t offset = 0;  ///< nanoseconds to be added to the own clock for the other one
    /// The offset is not more than that from the truth.
    std::int64_t error = std::numeric_limits<std::int64_t>::max();
  };

  /// A round began and ended at these times of the own clock, and the other rank has told its clock
  /// as `other`.
  void add(std::int64_t began, std::int64_t other, std::int64_t ended) noexcept {
    if (rounds_++ != 0) {
      const std::int64_t error = (ended - last_began_ + 1) / 2;
      if (error < best_.error) best_ = {other - (last_began_ + (ended - last_began_) / 2), error};
    }
    last_began_ = began;
  }
  /// After two rounds at least.
  [[nodiscard]] estimate best() const noexcept { return best_; }

 private:
  estimate best_;
  std::int64_t last_began_ = 0;
  std::uint32_t rounds_ = 0;
};

}  // namespace orrery::transport
