// expect: the result of a method of a process cannot be a view
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

#include <span>

struct Device {
  std::span<const int> page() { return {}; }
};
ORRERY_PROCESS(Device, page);

void f(orrery::remote<Device> device) { device->page(); }
