// expect: orrery: this class is only declared where its method is called: include its definition before
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

struct Device;
ORRERY_PROCESS(Device, put);

void f(orrery::remote<Device> device) { device->put(1); }
