// expect: (redeclaration|conflicting declaration|redefinition)
// SPDX-License-Identifier: Apache-2.0
#include <orrery/shared/shared.hpp>

void f() {
  const orrery::shared_vector<int> v(3);
  ORRERY_BEHAVIOUR(v, release);
}
