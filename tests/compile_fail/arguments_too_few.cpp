// expect: orrery: too few arguments: a method's default arguments are not known to a remote pointer
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

struct Device {
  void put(int, int) {}
};
ORRERY_PROCESS(Device, put);

void f(orrery::remote<Device> device) { start(device)->put(1); }
