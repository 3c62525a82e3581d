// expect: (use of deleted function|implicitly-deleted copy constructor)
// SPDX-License-Identifier: Apache-2.0
#include <orrery/shared/shared.hpp>

void f(orrery::shared_vector<int> v) {
  with(owner_computes(v), [](auto& own) { auto kept = own; });
}
