// expect: (cannot convert .orrery::future<int>. to .int|no viable conversion .*'future<.*int>')
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

#include <string>
struct Device {
  int get() { return 1; }
};
ORRERY_PROCESS(Device, get);

int f(orrery::remote<Device> device) { return start(device)->get(); }
