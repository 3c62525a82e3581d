// expect: T has no constructor that takes copies of these arguments
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

#include <string>

struct Device {
  explicit Device(std::string) {}
  void open() {}
};
ORRERY_PROCESS(Device, open);

void f() { orrery::spawn_group<Device>(orrery::everywhere(), 4, 17); }
