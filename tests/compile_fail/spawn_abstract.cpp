// expect: T must be a class that can be constructed
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

struct Device {
  virtual ~Device() = default;
  virtual void open() = 0;
};
ORRERY_PROCESS(Device, open);

void f() { orrery::spawn<Device>(orrery::here()); }
