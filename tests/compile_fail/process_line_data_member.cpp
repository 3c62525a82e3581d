// expect: ORRERY_PROCESS lists methods
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

struct Device {
  int size = 0;
};
ORRERY_PROCESS(Device, size);

void f(orrery::remote<Device> device) { device->size(); }
