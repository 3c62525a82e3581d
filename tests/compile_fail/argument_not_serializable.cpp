// expect: (explain<Node \*, Node, List>|Cause = Node\*)
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

#include <string>

struct Node {
  Node* next = nullptr;
};
struct List {
  std::string name;
  Node first;
};
struct Device {
  void put(const List&) {}
};
ORRERY_PROCESS(Device, put);

void f(orrery::remote<Device> device) { device->put(List{}); }
