// expect: T is the class of the process, not remote<class>
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

struct Device {
  void open() {}
};
ORRERY_PROCESS(Device, open);

auto f() { return orrery::lookup<orrery::remote<Device>>("/device"); }
