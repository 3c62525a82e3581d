// expect: (read-only|returns a const value|const long)
// SPDX-License-Identifier: Apache-2.0
#include <orrery/shared/shared.hpp>

void f(orrery::shared_vector<long> v) {
  {
    ORRERY_BEHAVIOUR(v, read_view);
    v[3] = 4;
  }
}
