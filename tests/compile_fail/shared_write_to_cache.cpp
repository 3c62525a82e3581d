// expect: (read-only|returns a const value|const int)
// SPDX-License-Identifier: Apache-2.0
#include <orrery/shared/shared.hpp>

void f(orrery::shared_vector<int> v) {
  with(read_cache(v), [](auto& c) { c[1] = 2; });
}
