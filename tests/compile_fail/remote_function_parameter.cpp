// expect: a raw pointer cannot be sent to another node: use std::unique_ptr
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

double energy(const double* x) { return *x; }

double f(const double* x) { return orrery::call<&energy>(orrery::here(), x); }
