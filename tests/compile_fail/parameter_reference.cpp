// expect: cannot take a pointer or a non-const reference
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

struct Device {
  void read(int&) {}
};
ORRERY_PROCESS(Device, read);

void f(orrery::remote<Device> device) {
  int page = 0;
  device->read(page);
}
