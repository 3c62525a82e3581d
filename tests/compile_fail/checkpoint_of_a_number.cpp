// expect: these are for arrays, groups and remote pointers
// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/checkpoint.hpp>
#include <orrery/orrery.hpp>

void f() { orrery::checkpoint("folder", 17); }
