// expect: f cannot be called with these arguments
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

void work(int, int) {}

void f() { orrery::spawn(orrery::here(), work, 1); }
