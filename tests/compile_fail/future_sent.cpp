// expect: this class cannot be sent to another node: give it .template <class A> void serialize
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

struct Device {
  void put(orrery::future<int>) {}
};
ORRERY_PROCESS(Device, put);

void f(orrery::remote<Device> device, orrery::future<int> n) { device->put(std::move(n)); }
