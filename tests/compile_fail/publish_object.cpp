// expect: (no matching function for call to .*publish)
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

struct Device {
  void open() {}
};
ORRERY_PROCESS(Device, open);

void f() {
  Device device;
  orrery::publish("/device", device);
}
