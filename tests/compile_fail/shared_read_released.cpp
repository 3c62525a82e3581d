// expect: an element cannot be read in a release scope
// SPDX-License-Identifier: Apache-2.0
#include <orrery/shared/shared.hpp>

int f(orrery::shared_vector<int> v) {
  return with(release(v), [](auto& w) {
    int x = w[1];
    return x;
  });
}
