// expect: this one cannot be copied: the method must take it by value
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

#include <memory>

struct Device {
  int look(const std::unique_ptr<int>& p) { return *p; }
};
ORRERY_PROCESS(Device, look);

void f(orrery::remote<Device> device, const std::unique_ptr<int>& p) { (void)start(device)->look(p); }
