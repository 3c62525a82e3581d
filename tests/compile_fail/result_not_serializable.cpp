// expect: a char pointer cannot be sent to another node: use std::string
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

struct Statistics {
  int pages = 0;
  const char* device = "";
};
struct Device {
  Statistics statistics() { return {}; }
};
ORRERY_PROCESS(Device, statistics);

void f(orrery::remote<Device> device) { device->statistics(); }
