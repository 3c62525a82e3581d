// SPDX-License-Identifier: Apache-2.0
#include <orrery/service/detail/batch_cost.hpp>

#include <algorithm>

namespace orrery::service {
namespace {
constexpr double kept = 1 - 1.0 / 16;  // of the weight of older measurements, by each new one
constexpr int until_outliers_are_known = 6;
constexpr double greatest_error = 2;
}  // namespace

void batch_cost::add(double x, double y) noexcept {
  if (count_ < until_outliers_are_known) {
    ++count_;
  } else if (const double expected = per_request() + per_batch() * x; expected > 0) {
    y = std::min(y, greatest_error * expected);
  }
  const double weight = 1 / (y * y);
  const auto put = [&](double& sum, double term) { sum = kept * sum + weight * term; };
  put(w_, 1);
  put(x_, x);
  put(y_, y);
  put(xx_, x * x);
  put(xy_, x * y);
}

double batch_cost::per_batch() const noexcept {
  const double spread = w_ * xx_ - x_ * x_;
  return spread <= 1e-6 * w_ * xx_ ? 0 : (w_ * xy_ - x_ * y_) / spread;
}

double batch_cost::per_request() const noexcept { return w_ == 0 ? 0 : (y_ - per_batch() * x_) / w_; }

double batch_cost::share(double x) const noexcept {
  if (w_ == 0) return 0;
  // Nothing is left for requests where all time is that of messages.
  return per_batch() * x / std::max(per_request(), 1e-3 * y_ / w_);
}

}  // namespace orrery::service
