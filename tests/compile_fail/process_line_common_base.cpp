// expect: orrery: two of the bases in ORRERY_PROCESS_DERIVED derive from the same described class
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

struct Root {
  void root() {}
};
ORRERY_PROCESS(Root, root);
struct Left : virtual Root {
  void left() {}
};
ORRERY_PROCESS(Left, left);
struct Right : virtual Root {
  void right() {}
};
ORRERY_PROCESS(Right, right);
struct Both : Left, Right {
  void both() {}
};
ORRERY_PROCESS_DERIVED(Both, (Left, Right), both);

void f(orrery::remote<Both> p) { p->both(); }
