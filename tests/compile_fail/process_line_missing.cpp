// expect: this class has no ORRERY_PROCESS.Class, methods...\) line before this use
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

struct Device {
  void put(int) {}
};

void f(orrery::remote<Device> device) { device->put(1); }
