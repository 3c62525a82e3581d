// expect: the class has no public method of this name that takes these arguments
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

struct Device {
  void put(int) {}
};
ORRERY_PROCESS(Device, putt);

void f(orrery::remote<Device> device) { device->putt(1); }
