// expect: the result of a method of a process cannot be a view
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

#include <string_view>

struct Device {
  std::string_view name() { return "disk"; }
};
ORRERY_PROCESS(Device, name);

void f(orrery::remote<Device> device) { device->name(); }
