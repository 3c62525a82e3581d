// expect: the class has no public method of this name that takes these arguments
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

struct Device {
  void read(int&) {}
  void read(double&) {}
};
ORRERY_PROCESS(Device, read);

void f(orrery::remote<Device> device) {
  int page = 0;
  device->read(page);
}
