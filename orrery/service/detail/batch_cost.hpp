// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace orrery::service {

/// The cost of batches for a session: so much for each batch, and so much for each request in it.
///
/// Problem: the rate of a session differs from moment to moment by more than windows make of it, so
/// rates of two windows are compared in vain.
///
/// The time of n requests that went in m batches is n times the one and m times the other cost. A
/// line through many measurements has both: y, the time of a request, is per_request() +
/// per_batch() * x, where x is the number of batches for each request. It is that with the least
/// squares of relative errors, in which older measurements count less and less. Where the service
/// is far away, the time of a message counts as a cost of batches, as larger ones hide it, too.
///
/// A measurement that is more than twice as long as expected was perhaps interrupted by the system,
/// and counts as twice as long.
///
/// Part of a window_tuner; used by one process only.
class batch_cost {
 public:
  /// So many batches for each request, and the time of a request (above 0).
  void add(double x, double y) noexcept;
  /// 0 if all measurements have the same x.
  [[nodiscard]] double per_batch() const noexcept;
  [[nodiscard]] double per_request() const noexcept;
  /// The cost of batches over that of requests; less than 0 if more batches were faster, 0 if
  /// nothing was measured.
  [[nodiscard]] double share(double x) const noexcept;

 private:
  // Weighted sums.
  double w_ = 0;
  double x_ = 0;
  double y_ = 0;
  double xx_ = 0;
  double xy_ = 0;
  int count_ = 0;  // up to those after which outliers are known
};

}  // namespace orrery::service
