// SPDX-License-Identifier: Apache-2.0
#include <orrery/service/window_tuner.hpp>

#include <algorithm>

namespace orrery::service {
namespace {
constexpr std::uint32_t windows_of_epoch = 8;
constexpr std::chrono::microseconds shortest_epoch{200};  // less is noise
constexpr std::uint32_t epochs_of_rest = 32;
constexpr double faster = 1.05;
constexpr double as_fast = 0.98;
}  // namespace

bool window_tuner::answered(std::uint32_t requests, time sent, time now) {
  least_latency_ = std::min(least_latency_, now - sent);
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
    case phase::begins: {
      best_rate_ = rate;
      const double on_its_way = 2 * rate * static_cast<double>(least_latency_.count());
      best_window_ = window_;
      window_ = static_cast<std::uint32_t>(std::clamp<double>(on_its_way, 2.0 * window_, greatest));
      phase_ = phase::climbs;
      return;
    }
    case phase::climbs:
    case phase::tries_more:
      if (rate > faster * best_rate_) {
        climb(rate);
      } else {
        rest(best_window_);
      }
      return;
    case phase::tries_less:
      if (rate >= as_fast * best_rate_) {
        best_rate_ = rate;
        rest(window_);
      } else {
        rest(best_window_);
      }
      return;
    case phase::rests:
      best_rate_ += (rate - best_rate_) / 8;  // the world changes
      if (++rested_ < epochs_of_rest) return;
      phase_ = next_is_more_ ? phase::tries_more : phase::tries_less;
      window_ = std::clamp(next_is_more_ ? 2 * best_window_ : best_window_ / 2, least, greatest);
      next_is_more_ = !next_is_more_;
  }
}

void window_tuner::climb(double rate) noexcept {
  best_rate_ = rate;
  best_window_ = window_;
  if (window_ == greatest) {
    rest(window_);
    return;
  }
  window_ = std::min(2 * window_, greatest);
  phase_ = phase::climbs;
}

void window_tuner::rest(std::uint32_t window) noexcept {
  window_ = window;
  best_window_ = window;
  rested_ = 0;
  phase_ = phase::rests;
}

}  // namespace orrery::service
