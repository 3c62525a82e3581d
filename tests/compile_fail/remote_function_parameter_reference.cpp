// expect: cannot take a pointer or a non-const reference
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

void energy(double& x) { x = 1; }

void f(double x) { orrery::call<&energy>(orrery::here(), x); }
