// expect: orrery: ORRERY_PROCESS lists `putt`, which the class has no method of
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

struct Device {
  void put(int) {}
};
ORRERY_PROCESS(Device, putt);
