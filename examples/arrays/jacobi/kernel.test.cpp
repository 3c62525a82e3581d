// SPDX-License-Identifier: Apache-2.0
#include "kernel.hpp"

#include <cmath>
#include <random>
#include <string>

#include <gtest/gtest.h>

namespace jacobi {
namespace {

struct kind {
  const char* name;
  bool here;
  void (*relax)(const tile&, double*, double*) noexcept;
};
void relax_narrow(const tile& t, double* old, double* change) noexcept { relax_with<2>(t, old, change); }

std::vector<kind> kinds() {
  std::vector<kind> all{{"any", true, relax_narrow}};
#if defined(__x86_64__)
  all.push_back({"AVX2", __builtin_cpu_supports("avx2") != 0, relax_avx2});
  all.push_back({"AVX-512", __builtin_cpu_supports("avx512f") != 0, relax_avx512});
#endif
  return all;
}

// Every width of columns and every rest, rows fewer than are asked for ahead and more: the same
// bits as a loop over rows with a second grid.
TEST(jacobi_kernel, is_the_plain_loop_to_the_last_bit) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> number(-1, 1);
  const auto numbers = [&](std::size_t n) {
    std::vector<double> v(n);
    for (double& x : v) x = number(random);
    return v;
  };
  for (const kind& k : kinds()) {
    if (!k.here) continue;
    for (std::size_t n = 1; n <= 150; ++n)
      for (const std::size_t rows : {std::size_t{1}, std::size_t{2}, n, n + 9}) {
        SCOPED_TRACE(std::string(k.name) + ", " + std::to_string(rows) + " rows of " + std::to_string(n));
        const auto up = numbers(n);
        const auto down = numbers(n);
        const auto left = numbers(rows);
        const auto right = numbers(rows);
        const auto before = numbers(rows * n);

        std::vector<double> expected(rows * n);
        double change = 0;
        for (std::size_t y = 0; y < rows; ++y)
          relax_row(y == 0 ? up.data() : &before[(y - 1) * n], &before[y * n],
                    y + 1 == rows ? down.data() : &before[(y + 1) * n], left[y], right[y], &expected[y * n], n);
        for (std::size_t i = 0; i < rows * n; ++i) change = std::max(change, std::abs(expected[i] - before[i]));

        for (const bool with_change : {false, true}) {
          auto cells = before;
          std::vector<double> first(rows);
          std::vector<double> last(rows);
          std::vector<double> old(2 * rows);
          double most = 0;
          k.relax({.cells = cells.data(),
                   .rows = rows,
                   .n = n,
                   .up = up.data(),
                   .down = down.data(),
                   .left = left.data(),
                   .right = right.data(),
                   .first = first.data(),
                   .last = last.data()},
                  old.data(), with_change ? &most : nullptr);
          ASSERT_EQ(cells, expected);
          ASSERT_EQ(most, with_change ? change : 0);
          for (std::size_t y = 0; y < rows; ++y) {
            ASSERT_EQ(first[y], expected[y * n]);
            ASSERT_EQ(last[y], expected[y * n + n - 1]);
          }
        }
      }
  }
}

}  // namespace
}  // namespace jacobi
