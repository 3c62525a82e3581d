// expect: orrery: too few arguments: a method's default arguments are not known to a remote pointer
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

struct Device {
  int read(int page, int count = 1) { return page + count; }
};
ORRERY_PROCESS(Device, read);

int f(orrery::remote<Device> device) { return device->read(7); }
