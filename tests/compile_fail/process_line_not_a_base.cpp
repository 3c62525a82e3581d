// expect: orrery: ORRERY_PROCESS_DERIVED.*the class must derive from all of them
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

struct Left {
  void left() {}
};
ORRERY_PROCESS(Left, left);
struct Other {
  void other() {}
};
ORRERY_PROCESS_DERIVED(Other, (Left), other);

void f(orrery::remote<Other> p) { p->other(); }
