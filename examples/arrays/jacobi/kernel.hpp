// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

// The numerical part, which knows nothing of blocks or PEs. Both the array and the plain loop that
// it is compared with use it, so that their results are the same to the last bit.

namespace jacobi {

/// Relaxes one row of n cells: each becomes the mean of its four neighbours. `left` and `right`
/// stand beside the row.
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

/// rows x n cells, and what is around them.
struct tile {
  double* cells;  ///< row by row
  std::size_t rows;
  std::size_t n;
  const double* up;  ///< the row above, n cells
  const double* down;
  const double* left;  ///< the column on the left, a cell for each row
  const double* right;
  /// If not null, room for the first and the last column as they are afterwards.
  double* first = nullptr;
  double* last = nullptr;
};

/// W numbers that a processor works on at once: in registers, and in memory of any alignment.
template <std::size_t W>
struct numbers {
  using type [[gnu::vector_size(W * sizeof(double))]] = double;
  using in_memory [[gnu::vector_size(W * sizeof(double)), gnu::aligned(alignof(double)), gnu::may_alias]] = double;
};

/// Relaxes N columns of a tile, from column x, where they are. The rows above, at hand and below
/// are in registers as they were before, so that each cell is read once and written once. `left`
/// are the cells on the left as they were; those of the last column go to `old`.
template <std::size_t N, std::size_t W>
[[gnu::always_inline]] inline void relax_columns(const tile& b, std::size_t x, const double* left, double* old,
                                                 double* change) noexcept {
  using number = typename numbers<W>::type;
  using in_memory = typename numbers<W>::in_memory;
  constexpr std::size_t count = N / W;
  // Rows: a small block is over before a processor has noticed that it should read ahead.
  constexpr std::size_t ahead = 8;
  const auto load = [](number& to, const double* from)
                        __attribute__((always_inline)) { to = *reinterpret_cast<const in_memory*>(from); };
  const bool is_last = x + N == b.n;
  const double* const right = is_last ? b.right : b.cells + x + N;  // not yet relaxed
  const std::size_t stride = is_last ? 1 : b.n;
  double* const first = x == 0 ? b.first : nullptr;
  double* const last = is_last ? b.last : nullptr;

  std::array<number, count> above;
  std::array<number, count> row;
  std::array<number, count> below;
  for (std::size_t k = 0; k < count; ++k) {
    load(above[k], b.up + x + k * W);
    load(row[k], b.cells + x + k * W);
  }
  number most{};
  for (std::size_t y = 0; y < b.rows; ++y) {
    double* const now = b.cells + y * b.n + x;
    const double* const next = y + 1 == b.rows ? b.down + x : now + b.n;
    if (y + ahead < b.rows)
      for (std::size_t i = 0; i < N; i += 8) __builtin_prefetch(now + ahead * b.n + i, 1);
    for (std::size_t k = 0; k < count; ++k) load(below[k], next + k * W);
    number before{};
    number after{};
    before[W - 1] = left[y];
    after[0] = right[y * stride];
    old[y] = row[count - 1][W - 1];
    number mean{};
    [&]<std::size_t... I>(std::index_sequence<I...>) __attribute__((always_inline)) {
      for (std::size_t k = 0; k < count; ++k) {
        const number west = __builtin_shufflevector(k == 0 ? before : row[k - 1], row[k], (W - 1 + I)...);
        const number east = __builtin_shufflevector(row[k], k + 1 == count ? after : row[k + 1], (1 + I)...);
        mean = 0.25 * ((west + east) + (above[k] + below[k]));
        *reinterpret_cast<in_memory*>(now + k * W) = mean;
        if (k == 0 && first != nullptr) first[y] = mean[0];
        if (change != nullptr) {
          const number by = mean < row[k] ? row[k] - mean : mean - row[k];
          most = by > most ? by : most;
        }
      }
    }(std::make_index_sequence<W>{});
    if (last != nullptr) last[y] = mean[W - 1];
    above = row;
    row = below;
  }
  // A maximum, not a sum: it does not depend on the order in which cells and blocks come to it.
  if (change != nullptr)
    for (std::size_t i = 0; i < W; ++i) *change = std::max(*change, most[i]);
}

/// Relaxes a tile with registers of W numbers, in columns as wide as 24 registers hold. `old` is
/// memory for two columns. Inlined, so that each processor has its own code.
template <std::size_t W>
[[gnu::always_inline]] inline void relax_with(const tile& b, double* old, double* change) noexcept {
  const double* left = b.left;
  for (std::size_t x = 0; x < b.n;) {
    double* const mine = left == old ? old + b.rows : old;
    const auto relax = [&]<std::size_t N>() __attribute__((always_inline)) {
      relax_columns<N, std::min(N, W)>(b, x, left, mine, change);
      x += N;
    };
    const std::size_t rest = b.n - x;
    if (rest >= 8 * W) {
      relax.template operator()<8 * W>();
    } else if (rest >= 4 * W) {
      relax.template operator()<4 * W>();
    } else if (rest >= W) {
      relax.template operator()<W>();
    } else {
      relax.template operator()<1>();
    }
    left = mine;
  }
}
#if defined(__x86_64__)
[[gnu::target("avx512f")]] inline void relax_avx512(const tile& b, double* old, double* change) noexcept {
  relax_with<8>(b, old, change);
}
[[gnu::target("avx2")]] inline void relax_avx2(const tile& b, double* old, double* change) noexcept {
  relax_with<4>(b, old, change);
}
#endif

/// Relaxes a tile where it is: half the memory to go through than with a second grid. Stores the
/// largest change of a cell, if that is wanted.
inline void relax_in_place(const tile& b, double* change = nullptr) {
  static thread_local std::vector<double> scratch;
  scratch.resize(2 * b.rows);
  if (change != nullptr) *change = 0;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return relax_avx512(b, scratch.data(), change);
  if (__builtin_cpu_supports("avx2")) return relax_avx2(b, scratch.data(), change);
#endif
  relax_with<2>(b, scratch.data(), change);
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
