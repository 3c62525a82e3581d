// expect: orrery: Both derives from several described classes: name them, ORRERY_PROCESS_DERIVED
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

struct Left {
  void left() {}
};
ORRERY_PROCESS(Left, left);
struct Right {
  void right() {}
};
ORRERY_PROCESS(Right, right);
struct Both : Left, Right {
  void both() {}
};
ORRERY_PROCESS(Both, both);

void f(orrery::remote<Both> p) { p->both(); }
