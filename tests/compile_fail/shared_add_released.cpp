// expect: which only writes: `\+=` reads it
// SPDX-License-Identifier: Apache-2.0
#include <orrery/shared/shared.hpp>

void f(orrery::shared_matrix<int> m) {
  with(release(m), [](auto& w) { w[1, 2] += 3; });
}
