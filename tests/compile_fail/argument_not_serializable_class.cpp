// expect: this class cannot be sent to another node: give it .template <class A> void serialize
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

#include <string>

class List {
 public:
  explicit List(int n) : n_(n) {}

 private:
  int n_;
};
struct Device {
  void put(const List&) {}
};
ORRERY_PROCESS(Device, put);

void f(orrery::remote<Device> device) { device->put(List(1)); }
