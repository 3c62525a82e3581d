// expect: (cannot convert .const char|no known conversion from 'const char|cannot initialize a parameter of type 'double')
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

double energy(double x) { return x; }

double f() { return orrery::call<&energy>(orrery::here(), "one"); }
