// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

namespace orrery::service {

/// Finds the window of a session.
///
/// Problem: with too few requests outstanding a session waits for messages, with too many its
/// replies are late and its batches leave the cache. How many are right depends on the machine, the
/// network, the service and what others do.
///
/// The tuner goes by *epochs* of some windows of requests. It has the rate of each, and the least
/// time from a batch to its answer so far. It begins with what is on its way in twice that time at
/// that rate, and doubles as long as the rate grows by a twentieth. Then it keeps the best window,
/// and every now and then tries one of twice, or half, of it: twice, if that is faster; half, if
/// that is not slower. Epochs in which the client never waited for room say nothing.
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
  /// A batch of so many requests, sent then, was answered now. Whether window() has changed.
  bool answered(std::uint32_t requests, time sent, time now);

 private:
  enum class phase : std::uint8_t { begins, climbs, rests, tries_more, tries_less };

  void end_epoch(double rate);
  void rest(std::uint32_t window) noexcept;
  void climb(double rate) noexcept;

  std::uint32_t window_ = first;
  std::uint32_t best_window_ = first;
  double best_rate_ = 0;  // with that window, requests for each nanosecond
  time least_latency_ = time::max();
  time begun_{-1};  // of the epoch
  std::uint64_t requests_ = 0;
  std::uint32_t rested_ = 0;  // epochs
  phase phase_ = phase::begins;
  bool limited_ = false;
  bool next_is_more_ = true;
};

}  // namespace orrery::service
