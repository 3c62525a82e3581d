// SPDX-License-Identifier: Apache-2.0
#include <orrery/service/window_tuner.hpp>

#include <algorithm>

namespace orrery::service {
namespace {
constexpr std::uint32_t windows_of_epoch = 4;
constexpr std::chrono::microseconds shortest_epoch{200};  // less is noise
constexpr std::uint32_t least_rest = 32;  // epochs
constexpr std::uint32_t greatest_rest = 512;
constexpr std::uint32_t pairs = 8;  // of epochs that are compared
constexpr double faster = 1.05;
constexpr double requests_of_batch = 64;
}  // namespace

std::uint32_t window_tuner::floor() const noexcept {
  return static_cast<std::uint32_t>(std::clamp<double>(2 * requests_of_batch * ranges_, least, greatest));
}

bool window_tuner::answered(std::uint32_t requests, time now) {
  if (begun_.count() < 0) {
    begun_ = now;
    return false;
  }
  requests_ += requests;
  const time took = now - begun_;
  if (requests_ < std::uint64_t{windows_of_epoch} * window_ || took < shortest_epoch) return false;
  const std::uint32_t before = window_;
  if (limited_) end_epoch(static_cast<double>(requests_) / static_cast<double>(took.count()));
  limited_ = false;
  requests_ = 0;
  begun_ = now;
  return window_ != before;
}

void window_tuner::end_epoch(double rate) {
  switch (phase_) {
    case phase::begins:
      best_rate_ = rate;
      best_window_ = window_;
      window_ = std::clamp(2 * window_, floor(), greatest);
      phase_ = phase::climbs;
      return;
    case phase::climbs:
      if (rate > faster * best_rate_) {
        climb(rate);
      } else {
        rest();
      }
      return;
    case phase::rests:
      if (++rested_ >= rest_) begin_comparison();
      return;
    case phase::compares:
      compare(rate);
  }
}

void window_tuner::climb(double rate) noexcept {
  best_rate_ = rate;
  best_window_ = window_;
  if (window_ == greatest) {
    rest();
    return;
  }
  window_ = std::min(2 * window_, greatest);
}

void window_tuner::rest() noexcept {
  best_window_ = std::max(best_window_, floor());
  window_ = best_window_;
  rested_ = 0;
  phase_ = phase::rests;
}

void window_tuner::begin_comparison() noexcept {
  if (next_is_more_ ? best_window_ == greatest : best_window_ == floor()) next_is_more_ = !next_is_more_;
  other_window_ = std::clamp(next_is_more_ ? 2 * best_window_ : best_window_ / 2, floor(), greatest);
  window_ = other_window_;
  compared_ = 0;
  rate_of_best_ = 0;
  rate_of_other_ = 0;
  phase_ = phase::compares;
}

void window_tuner::compare(double rate) noexcept {
  if (window_ == other_window_) {
    rate_of_other_ += rate;
    window_ = best_window_;
    return;
  }
  rate_of_best_ += rate;
  window_ = other_window_;
  if (++compared_ < pairs) return;
  if (rate_of_other_ >= (next_is_more_ ? faster : 1.0) * rate_of_best_) {
    best_window_ = other_window_;
    rest_ = least_rest;
  } else {
    next_is_more_ = !next_is_more_;
    rest_ = std::min(2 * rest_, greatest_rest);
  }
  rest();
}

}  // namespace orrery::service
