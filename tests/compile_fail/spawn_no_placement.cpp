// expect: (could not convert|cannot convert|no known conversion|no matching function).*
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

#include <string>

struct Device {
  explicit Device(std::string) {}
  void open() {}
};
ORRERY_PROCESS(Device, open);

void f() { orrery::spawn<Device>("disk"); }
