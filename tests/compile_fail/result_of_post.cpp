// expect: (void value not ignored|cannot initialize return object of type 'int' with an rvalue of type 'void')
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

struct Device {
  int get() { return 1; }
};
ORRERY_PROCESS(Device, get);

int f(orrery::remote<Device> device) { return post(device)->get(); }
