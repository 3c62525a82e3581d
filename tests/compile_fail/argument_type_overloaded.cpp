// expect: the class has no public method of this name that takes these arguments
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

#include <string>

struct Device {
  void put(int) {}
  void put(const std::string&) {}
};
ORRERY_PROCESS(Device, put);

struct Key {};
void f(orrery::remote<Device> device) { device->put(Key{}); }
