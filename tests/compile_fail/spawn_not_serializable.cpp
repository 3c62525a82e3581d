// expect: a raw pointer cannot be sent to another node: use std::unique_ptr
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

struct Device {
  explicit Device(const int*) {}
  void open() {}
};
ORRERY_PROCESS(Device, open);

void f() {
  const int n = 0;
  orrery::spawn<Device>(orrery::here(), &n);
}
