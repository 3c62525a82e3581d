// expect: the elements of remote data have to be numbers
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

void f() { orrery::spawn<bool[]>(orrery::here(), 8); }
