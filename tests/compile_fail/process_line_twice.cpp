// expect: error: .*orrery: Device has a second ORRERY_PROCESS line: name all methods in the first
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

struct Device {
  void put(int) {}
  void take() {}
};
ORRERY_PROCESS(Device, put);
ORRERY_PROCESS(Device, take);

void f(orrery::remote<Device> device) { device->put(1); }
