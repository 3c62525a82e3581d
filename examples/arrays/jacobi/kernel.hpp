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

/// Some rows of a block and what is around them.
struct strip {
  std::size_t rows;
  std::size_t n;
  const double* left;
  const double* right;
  const double* below;  ///< the row below the last
};

/// Relaxes the rows of a strip, which are at `cells`, where they are. `copy` is memory that stays in the cache: rows + 1 rows of n + 2 cells, of
/// which the first is the row above the strip. N is n if the compiler knows it, or 0. Inlined, so that each processor has its own code.
template <std::size_t N>
[[gnu::always_inline]] inline void relax_strip_inline(const strip& s, double* __restrict cells,
                                                      double* __restrict copy) noexcept {
  constexpr std::size_t ahead = 8;
  const std::size_t n = N == 0 ? s.n : N;
  const std::size_t width = n + 2;
  for (std::size_t y = 0; y < s.rows; ++y) {
    // A small block is over before a processor has noticed that it should read ahead.
    if (N != 0 && y + ahead < s.rows)
      for (std::size_t i = 0; i < n; i += 8) __builtin_prefetch(cells + (y + ahead) * n + i, 1);
    double* const row = copy + (y + 1) * width;
    row[0] = s.left[y];
    std::copy_n(cells + y * n, n, row + 1);
    row[n + 1] = s.right[y];
  }
  for (std::size_t y = 0; y < s.rows; ++y) {
    const double* __restrict up = copy + y * width + 1;
    const double* __restrict row = up + width - 1;
    const double* __restrict down = y + 1 == s.rows ? s.below : row + width + 1;
    double* __restrict to = cells + y * n;
    for (std::size_t i = 0; i < n; ++i) to[i] = 0.25 * ((row[i] + row[i + 2]) + (up[i] + down[i]));
  }
}
/// The rows of a small block are over before their loops have well begun, unless the compiler knows how long they are.
[[gnu::always_inline]] inline void relax_strip_inline(const strip& s, double* __restrict cells,
                                                      double* __restrict copy) noexcept {
  if (s.n == 16) return relax_strip_inline<16>(s, cells, copy);
  if (s.n == 32) return relax_strip_inline<32>(s, cells, copy);
  if (s.n == 64) return relax_strip_inline<64>(s, cells, copy);
  relax_strip_inline<0>(s, cells, copy);
}
#if defined(__x86_64__)
[[gnu::target("avx512f")]] inline void relax_strip_avx512(const strip& s, double* cells, double* copy) noexcept {
  relax_strip_inline(s, cells, copy);
}
[[gnu::target("avx2")]] inline void relax_strip_avx2(const strip& s, double* cells, double* copy) noexcept {
  relax_strip_inline(s, cells, copy);
}
#endif
inline void relax_strip(const strip& s, double* cells, double* copy) noexcept {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return relax_strip_avx512(s, cells, copy);
  if (__builtin_cpu_supports("avx2")) return relax_strip_avx2(s, cells, copy);
#endif
  relax_strip_inline(s, cells, copy);
}

/// Relaxes rows x n cells where they are, strip by strip: half the memory to go through than with a second grid, and reading what has just been
/// written, which a processor does slowly unless in the same pieces, is far away. `up` and `down` are the rows, `left` and `right` the columns
/// around them. Stores the largest change, if that is wanted.
inline void relax_in_place(double* cells, std::size_t rows, std::size_t n, const double* up, const double* down,
                           const double* left, const double* right, double* change = nullptr) {
  static thread_local std::vector<double> scratch;
  const std::size_t width = n + 2;
  const std::size_t most = std::clamp<std::size_t>(1536 / n, 1, rows);
  scratch.resize((most + 1) * width);
  double* const copy = scratch.data();
  std::copy_n(up, n, copy + 1);
  for (std::size_t y = 0; y < rows;) {
    const std::size_t count = std::min(most, rows - y);
    double* const now = cells + y * n;
    const double* const below = y + count == rows ? down : now + count * n;
    relax_strip({count, n, left + y, right + y, below}, now, copy);
    if (change != nullptr)
      for (std::size_t j = 0; j < count; ++j)
        *change = std::max(*change, largest_change(copy + (j + 1) * width + 1, now + j * n, n));
    std::copy_n(copy + count * width + 1, n, copy + 1);
    y += count;
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
