// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

// The numerical part, which knows nothing of blocks or PEs. Both the array and the plain loop that it is compared with use it, so that their
// results are the same to the last bit.

namespace jacobi {

/// Relaxes one row of n cells: each becomes the mean of its four neighbours. `left` and `right` stand beside the row.
inline void relax_row(const double* __restrict up, const double* __restrict row, const double* __restrict down,
                      double left, double right, double* __restrict out, std::size_t n) noexcept {
  if (n == 1) {
    out[0] = 0.25 * ((left + right) + (up[0] + down[0]));
    return;
  }
  // The ends apart: what is left is one loop over contiguous memory, without a condition.
  out[0] = 0.25 * ((left + row[1]) + (up[0] + down[0]));
  for (std::size_t i = 1; i < n - 1; ++i) out[i] = 0.25 * ((row[i - 1] + row[i + 1]) + (up[i] + down[i]));
  out[n - 1] = 0.25 * ((row[n - 2] + right) + (up[n - 1] + down[n - 1]));
}

/// The largest change of a cell. A maximum, not a sum: it does not depend on the order in which blocks come to it.
inline double largest_change(const double* a, const double* b, std::size_t n) noexcept {
  double most = 0;
  for (std::size_t i = 0; i < n; ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

/// Relaxes rows x n cells where they are, with copies of two rows as they were: half the memory to go through than with a second grid. `up` and
/// `down` are the rows, `left` and `right` the columns around them. Stores the largest change, if that is wanted.
inline void relax_in_place(double* cells, std::size_t rows, std::size_t n, const double* up, const double* down,
                           const double* left, const double* right, double* change = nullptr) {
  std::vector<double> above(up, up + n);
  std::vector<double> row(n);
  for (std::size_t y = 0; y < rows; ++y) {
    double* const now = cells + y * n;
    std::copy_n(now, n, row.data());
    relax_row(above.data(), row.data(), y == rows - 1 ? down : now + n, left[y], right[y], now, n);
    if (change != nullptr) *change = std::max(*change, largest_change(row.data(), now, n));
    std::swap(above, row);
  }
}

/// The temperature of the walls: the upper one is hot, the others are cold.
inline constexpr double hot = 1;
inline constexpr double cold = 0;

/// Relaxes the rows [first, last) of a square of n x n cells in one piece.
inline void relax_rows(const double* from, double* to, std::size_t n, std::size_t first, std::size_t last) {
  const std::vector<double> above(n, hot);
  const std::vector<double> below(n, cold);
  for (std::size_t y = first; y < last; ++y)
    relax_row(y == 0 ? above.data() : from + (y - 1) * n, from + y * n, y == n - 1 ? below.data() : from + (y + 1) * n,
              cold, cold, to + y * n, n);
}

/// The whole square after so many steps, without any parallelism: what the array has to agree with.
inline std::vector<double> plain(std::size_t n, int steps) {
  std::vector<double> now(n * n);
  std::vector<double> next(n * n);
  for (int s = 0; s < steps; ++s) {
    relax_rows(now.data(), next.data(), n, 0, n);
    std::swap(now, next);
  }
  return now;
}

}  // namespace jacobi
