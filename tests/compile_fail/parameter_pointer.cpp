// expect: a raw pointer cannot be sent to another node: use std::unique_ptr
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

struct Device {
  void put(int*) {}
};
ORRERY_PROCESS(Device, put);

void f(orrery::remote<Device> device) {
  int page = 0;
  device->put(&page);
}
