// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace orrery::service {

/// Finds the window of a session.
///
/// Problem: with too few requests outstanding a session waits for messages, with too many its
/// replies are late and its batches leave the cache. How many are right depends on the machine, the
/// network, the service and what others do.
///
/// Half of a window should give each range that it goes to a batch worth its message (64 requests):
/// less is never tried.
///
/// The tuner goes by *epochs* of some windows of requests, and has the rate of each. It doubles the
/// window as long as the rate grows by a twentieth. Then it keeps the best one, and every now and
/// then compares it with one of twice, or half, of it, in turn for some epochs, as single ones
/// differ by more than windows do: it takes twice, if that is faster by a twentieth; half, if that
/// is not slower. Epochs in which the client never waited for room say nothing.
///
/// Owned by session_core; used by its process only.
class window_tuner {
 public:
  using time = std::chrono::nanoseconds;
  static constexpr std::uint32_t first = 256;
  static constexpr std::uint32_t least = 32;
  static constexpr std::uint32_t greatest = 1U << 14U;

  [[nodiscard]] std::uint32_t window() const noexcept { return window_; }
  /// The client waits for room in the window.
  void limited() noexcept { limited_ = true; }
  /// Half of a window goes to so many ranges.
  void divided(std::size_t ranges) noexcept { ranges_ += (static_cast<double>(ranges) - ranges_) / 4; }
  /// A batch of so many requests was answered now. Whether window() has changed.
  bool answered(std::uint32_t requests, time now);

 private:
  enum class phase : std::uint8_t { begins, climbs, rests, compares };

  [[nodiscard]] std::uint32_t floor() const noexcept;
  void end_epoch(double rate);
  void climb(double rate) noexcept;
  void rest() noexcept;
  void begin_comparison() noexcept;
  void compare(double rate) noexcept;

  std::uint32_t window_ = first;
  std::uint32_t best_window_ = first;
  std::uint32_t other_window_ = first;  // it is compared with
  double best_rate_ = 0;  // while it climbs: with that window, requests for each nanosecond
  time begun_{-1};  // of the epoch
  std::uint64_t requests_ = 0;
  double ranges_ = 1;  // smoothed
  std::uint32_t rest_ = 32;  // epochs until the next comparison: longer after one in vain
  std::uint32_t rested_ = 0;
  std::uint32_t compared_ = 0;  // pairs of epochs
  double rate_of_best_ = 0;  // sums of the epochs that are compared
  double rate_of_other_ = 0;
  phase phase_ = phase::begins;
  bool limited_ = false;
  bool next_is_more_ = true;
};

}  // namespace orrery::service
