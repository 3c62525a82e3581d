// expect: reduce needs a method that returns something
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

#include <functional>

struct Device {
  void open() {}
};
ORRERY_PROCESS(Device, open);

void f(orrery::group<Device> devices) { devices.reduce<&Device::open>(std::plus{}); }
