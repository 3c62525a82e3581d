// expect: (unable to find the promise type for this coroutine|this function cannot be a coroutine)
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

struct Device {
  int get() { return 1; }
};
ORRERY_PROCESS(Device, get);

int f(orrery::remote<Device> device) { return co_await start(device)->get(); }
