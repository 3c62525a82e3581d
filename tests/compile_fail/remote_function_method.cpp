// expect: f is a function or a static method; for a method of a process write
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

struct Device {
  int get() { return 1; }
};
ORRERY_PROCESS(Device, get);

int f() { return orrery::call<&Device::get>(orrery::here()); }
