// expect: (use of deleted function .*future<int>|call to implicitly-deleted copy constructor of 'future)
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

struct Device {
  int get() { return 1; }
};
ORRERY_PROCESS(Device, get);

void f(orrery::remote<Device> device) {
  auto a = start(device)->get();
  auto b = a;
}
