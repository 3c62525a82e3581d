// expect: remote_cast<T> need the class of a process
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

struct Device {
  void open() {}
};
ORRERY_PROCESS(Device, open);

auto f(orrery::remote<Device> device) { return orrery::remote_cast<int>(device); }
