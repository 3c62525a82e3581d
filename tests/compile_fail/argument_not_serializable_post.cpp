// expect: a char pointer cannot be sent to another node: use std::string
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

struct Page {
  const char* data = nullptr;
};
struct Device {
  void put(Page) {}
};
ORRERY_PROCESS(Device, put);

void f(orrery::remote<Device> device) { post(device)->put({}); }
