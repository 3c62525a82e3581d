// expect: the class of p is neither T nor a base of T nor derived from it
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

struct Device {
  void open() {}
};
ORRERY_PROCESS(Device, open);
struct Printer {
  void print() {}
};
ORRERY_PROCESS(Printer, print);

auto f(orrery::remote<Device> device) { return orrery::remote_cast<Printer>(device); }
