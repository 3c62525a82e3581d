// expect: the class of elements, members and processes needs a default constructor
// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/checkpoint.hpp>
#include <orrery/orrery.hpp>

struct Device {
  explicit Device(int n) : number(n) {}
  int get() const { return number; }
  int number;
};
ORRERY_PROCESS(Device, get);

void f(const orrery::group<Device>& g) { orrery::checkpoint("folder", g); }
