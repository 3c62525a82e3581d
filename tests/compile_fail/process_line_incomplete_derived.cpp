// expect: orrery: ORRERY_PROCESS_DERIVED\(Both, .*must derive from all of them, and its definition stand before
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
struct Both;
ORRERY_PROCESS_DERIVED(Both, (Left, Right), both);
