// expect: (orrery_process_of<Device>::methods_in_ORRERY_PROCESS.* has no member named .pull|no member named 'pull' in 'orrery_process_of<Device>::methods_in_ORRERY_PROCESS)
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

struct Device {
  void put(int) {}
};
ORRERY_PROCESS(Device, put);

void f(orrery::remote<Device> device) { device->pull(1); }
