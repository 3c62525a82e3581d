// expect: a raw pointer cannot be sent to another node: use std::unique_ptr
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

struct Device {
  int* page() { return nullptr; }
};
ORRERY_PROCESS(Device, page);

void f(orrery::remote<Device> device) { device->page(); }
