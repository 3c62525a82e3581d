// expect: (could not convert .device. from .remote<Device>. to .remote<Disk>|no viable conversion .*'remote<Device>' to .*'remote<Disk>')
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

struct Device {
  void open() {}
};
ORRERY_PROCESS(Device, open);
struct Disk : Device {
  void spin() {}
};
ORRERY_PROCESS(Disk, spin);

orrery::remote<Disk> f(orrery::remote<Device> device) { return device; }
