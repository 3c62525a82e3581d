// expect: each member of a group needs an argument of its own
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

#include <memory>

struct Device {
  void put(std::unique_ptr<int>) {}
};
ORRERY_PROCESS(Device, put);

void f(orrery::group<Device> devices) { devices->put(std::make_unique<int>(1)); }
