// expect: pass what it needs as arguments behind it
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

#include <functional>

void f(std::function<void()> g) { orrery::spawn(orrery::here(), g); }
