// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/service/detail/batch_cost.hpp>

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
/// less is never kept.
///
/// The tuner goes by *epochs* of some windows of requests, each of which tells what batches cost
/// (batch_cost). It doubles the window until batches cost only a small part of what requests do.
/// Every now and then it measures the costs again by epochs with a quarter of the window and with
/// all of it, in turn. It takes twice the window if batches cost too much, and half of it if they
/// would still cost little. It measures at once when requests go to many more ranges than before.
/// Epochs in which the client never waited for room say nothing.
///
/// Owned by session_core; used by its process only.
class window_tuner {
 public:
  using time = std::chrono::nanoseconds;
  static constexpr std::uint32_t first = 256;
  static constexpr std::uint32_t least = 32;  ///< also while it measures
  static constexpr std::uint32_t greatest = 1U << 14U;

  [[nodiscard]] std::uint32_t window() const noexcept { return window_; }
  /// The client waits for room in the window.
  void limited() noexcept { limited_ = true; }
  /// Half of a window goes to so many ranges.
  void divided(std::size_t ranges) noexcept { ranges_ += (static_cast<double>(ranges) - ranges_) / 4; }
  /// A batch of so many requests was answered now. Whether window() has changed.
  bool answered(std::uint32_t requests, time now);

 private:
  enum class phase : std::uint8_t { begins, climbs, rests, measures };
  enum class step : std::uint8_t { none, more, less };

  [[nodiscard]] std::uint32_t floor() const noexcept;
  void end_epoch(double batches_of_request, double time_of_request) noexcept;
  void climb(double batches_of_request) noexcept;
  void begin_measuring() noexcept;
  void measure(double batches_of_request) noexcept;

  std::uint32_t window_ = first;
  std::uint32_t kept_window_ = first;  // also while a part of it is measured
  batch_cost cost_;
  time begun_{-1};  // of the epoch
  std::uint64_t requests_ = 0;
  std::uint64_t batches_ = 0;
  double ranges_ = 1;  // smoothed
  std::uint32_t rest_ = 0;  // epochs until costs are measured again; see measure()
  std::uint32_t rested_ = 0;
  std::uint32_t measured_ = 0;  // pairs of epochs
  double sum_ = 0;  // of the batches for each request in the epochs with kept_window_ in these
  double usual_ = 0;  // their mean
  step last_step_ = step::none;
  phase phase_ = phase::begins;
  bool limited_ = false;
};

}  // namespace orrery::service
