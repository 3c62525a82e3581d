// expect: (orrery_process_of<Device>::methods_in_ORRERY_PROCESS.* has no member named .get|no member named 'get' in 'orrery_process_of<Device>::methods_in_ORRERY_PROCESS)
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

struct Device {
  void put(int) {}
  int get() { return 1; }
};
ORRERY_PROCESS(Device, put);

int f(orrery::remote<Device> device) { return device->get(); }
