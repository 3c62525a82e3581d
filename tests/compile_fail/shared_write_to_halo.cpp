// expect: (read-only|returns a const value|const double)
// SPDX-License-Identifier: Apache-2.0
#include <orrery/shared/shared.hpp>

void f(orrery::team_member& t, orrery::shared_matrix<double> m) {
  with(halo_cache(m, t, 1, orrery::edges::open), [](auto& c) { c[1, 0] = 2; });
}
