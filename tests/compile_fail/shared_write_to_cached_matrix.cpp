// expect: (read-only|returns a const value|const double)
// SPDX-License-Identifier: Apache-2.0
#include <orrery/shared/shared.hpp>

void f(orrery::shared_matrix<double> m) {
  with(read_cache(m.rows(0, 2)), [](auto& c) { c[1, 0] += 2; });
}
