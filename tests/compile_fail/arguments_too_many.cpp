// expect: (expects 1 argument, 2 provided|requires single argument 'arguments', but 2 arguments were provided)
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

struct Device {
  void put(int) {}
};
ORRERY_PROCESS(Device, put);

void f(orrery::remote<Device> device) { post(device)->put(1, 2); }
