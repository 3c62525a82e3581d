// expect: the class has no public method of this name that takes these arguments
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

class Device {
  void put(int) {}
};
ORRERY_PROCESS(Device, put);

void f(orrery::remote<Device> device) { device->put(1); }
