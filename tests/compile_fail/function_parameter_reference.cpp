// expect: f cannot be called with these arguments
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

void work(int&) {}

void f() {
  int n = 0;
  orrery::spawn(orrery::here(), work, n);
}
