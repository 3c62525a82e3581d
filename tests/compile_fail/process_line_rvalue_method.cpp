// expect: ORRERY_PROCESS lists methods
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

struct Device {
  void put(int) && {}
};
ORRERY_PROCESS(Device, put);

void f(orrery::remote<Device> device) { device->put(1); }
