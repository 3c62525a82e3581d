// expect: with\(behaviours..., f\) needs a behaviour
// SPDX-License-Identifier: Apache-2.0
#include <orrery/shared/shared.hpp>

void f() {
  orrery::with([] {});
}
