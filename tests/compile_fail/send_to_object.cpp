// expect: (cannot convert|could not convert|no known conversion|no viable conversion|no matching function).*remote<.*Device>
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

struct Device {
  int get() { return 1; }
};
ORRERY_PROCESS(Device, get);

void f(orrery::remote<Device> to) { orrery::send(to, 1); }
