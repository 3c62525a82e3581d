// SPDX-License-Identifier: Apache-2.0
#pragma once

// The sequential loops: they know nothing of shared data, and the programs with other libraries use
// them, too.

#include <algorithm>

namespace mm2 {

/// The paper's: the inner loop goes down a column.
inline int dot_product(const int* a, const int* b, int j, int n) {
  int sum = 0;
  for (int k = 0; k < n; ++k) sum += a[k] * b[k * n + j];
  return sum;
}

/// The same sums for a whole row, but the inner loop goes along rows.
inline void row_product(const int* a, const int* b, int* c, int n) {
  std::fill_n(c, n, 0);
  for (int k = 0; k < n; ++k)
    for (int j = 0; j < n; ++j) c[j] += a[k] * b[k * n + j];
}

}  // namespace mm2
