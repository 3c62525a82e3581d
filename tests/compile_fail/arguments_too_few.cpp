// expect: (expects 2 arguments, 1 provided|requires 2 arguments, but 1 was provided)
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

struct Device {
  void put(int, int) {}
};
ORRERY_PROCESS(Device, put);

void f(orrery::remote<Device> device) { start(device)->put(1); }
