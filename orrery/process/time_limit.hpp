// SPDX-License-Identifier: Apache-2.0
#pragma once

// Durations and clocks of std::chrono. <chrono> has them, too, but reads the streams for its
// formats (libstdc++ 12), a tenth of what a small program costs to compile.
#include <mutex>

namespace orrery {

/// How long to wait: any duration of std::chrono, as functions that wait take it. A time that
/// nanoseconds cannot hold (292 years and more, such as `std::chrono::hours::max()`) is the longest
/// that they can; not a number is no time at all.
class time_limit {
 public:
  constexpr time_limit() noexcept = default;  ///< no time at all
  template <class Rep, class Period>
  constexpr time_limit(std::chrono::duration<Rep, Period> d) noexcept  // NOLINT(google-explicit-constructor)
      : time_(saturated(d)) {}

  /// The time in nanoseconds; negative if it was negative.
  [[nodiscard]] constexpr std::chrono::nanoseconds time() const noexcept { return time_; }
  template <class A>
  void serialize(A& a) {
    a & time_;
  }

 private:
  template <class Rep, class Period>
  static constexpr std::chrono::nanoseconds saturated(std::chrono::duration<Rep, Period> d) noexcept {
    using std::chrono::nanoseconds;
    const double ns = std::chrono::duration<double, std::nano>(d).count();
    if (ns >= static_cast<double>(nanoseconds::max().count())) return nanoseconds::max();
    if (ns <= static_cast<double>(nanoseconds::min().count())) return nanoseconds::min();
    return ns == ns ? std::chrono::duration_cast<nanoseconds>(d) : nanoseconds::zero();
  }

  std::chrono::nanoseconds time_{};
};

}  // namespace orrery
