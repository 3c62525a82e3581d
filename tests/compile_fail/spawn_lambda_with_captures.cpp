// expect: use spawn_here
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

void f(int n) {
  orrery::spawn(orrery::here(), [n] { (void)n; });
}
