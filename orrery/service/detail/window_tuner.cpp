// SPDX-License-Identifier: Apache-2.0
#include <orrery/service/detail/window_tuner.hpp>

#include <algorithm>

namespace orrery::service {
namespace {
constexpr std::uint32_t windows_of_epoch = 4;
constexpr std::chrono::microseconds shortest_epoch{200};  // less is noise
constexpr std::uint32_t least_rest = 8;  // epochs
constexpr std::uint32_t greatest_rest = 512;
constexpr std::uint32_t pairs = 8;  // of epochs that measure
constexpr double requests_of_batch = 64;
constexpr double more_batches = 2;  // than before: the costs are measured at once
// The cost of batches over that of requests: the window is doubled above the one, and halved below
// the other one. Half of a window makes twice the share.
constexpr double great_share = 0.05;
constexpr double small_share = 0.015;

std::uint32_t part_of(std::uint32_t window) noexcept { return std::max(window / 4, window_tuner::least); }
}  // namespace

std::uint32_t window_tuner::floor() const noexcept {
  return static_cast<std::uint32_t>(std::min<double>(2 * requests_of_batch * std::max(ranges_, 1.0), greatest));
}

bool window_tuner::answered(std::uint32_t requests, time now) {
  if (begun_.count() < 0) {
    begun_ = now;
    return false;
  }
  requests_ += requests;
  ++batches_;
  const time took = now - begun_;
  if (requests_ < std::uint64_t{windows_of_epoch} * window_ || took < shortest_epoch) return false;
  const std::uint32_t before = window_;
  const auto count = static_cast<double>(requests_);
  if (limited_) end_epoch(static_cast<double>(batches_) / count, static_cast<double>(took.count()) / count);
  limited_ = false;
  requests_ = 0;
  batches_ = 0;
  begun_ = now;
  return window_ != before;
}

void window_tuner::end_epoch(double batches_of_request, double time_of_request) noexcept {
  if (phase_ == phase::climbs || phase_ == phase::measures) cost_.add(batches_of_request, time_of_request);
  switch (phase_) {
    case phase::begins:  // the service has filled its caches
      phase_ = phase::climbs;
      return;
    case phase::climbs:
      climb(batches_of_request);
      return;
    case phase::rests:
      if (++rested_ >= rest_ || batches_of_request > more_batches * usual_) begin_measuring();
      return;
    case phase::measures:
      measure(batches_of_request);
  }
}

void window_tuner::climb(double batches_of_request) noexcept {
  const bool enough = window_ >= 4 * first && cost_.share(batches_of_request) < great_share;
  if (enough || window_ == greatest) {
    begin_measuring();
    return;
  }
  window_ = std::clamp(2 * window_, floor(), greatest);
  kept_window_ = window_;
}

void window_tuner::begin_measuring() noexcept {
  kept_window_ = std::max(kept_window_, floor());
  window_ = part_of(kept_window_);
  measured_ = 0;
  sum_ = 0;
  phase_ = phase::measures;
}

void window_tuner::measure(double batches_of_request) noexcept {
  if (window_ != kept_window_) {
    window_ = kept_window_;
    return;
  }
  sum_ += batches_of_request;
  if (++measured_ < pairs) {
    window_ = part_of(kept_window_);
    return;
  }
  usual_ = sum_ / pairs;
  const double share = cost_.share(usual_);
  const std::uint32_t before = kept_window_;
  if (share > great_share) kept_window_ = std::min(2 * kept_window_, greatest);
  if (share < small_share) kept_window_ = std::max(kept_window_ / 2, floor());
  const step s = kept_window_ > before ? step::more : kept_window_ < before ? step::less : step::none;
  const bool goes_on = s != step::none && s == last_step_;
  // A rest is longer each time, unless the window goes on to grow or to shrink.
  rest_ = goes_on ? least_rest : std::clamp(2 * rest_, least_rest, greatest_rest);
  last_step_ = s;
  rested_ = 0;
  window_ = kept_window_;
  phase_ = phase::rests;
}

}  // namespace orrery::service
