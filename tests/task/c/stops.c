// SPDX-License-Identifier: Apache-2.0
// A main task that waits on when it was told to end ends all the same, as by orrery_exit.
//
// run: --orrery-pes=1
// run: --orrery-nodes=2 --orrery-pes=1
// run: --orrery-sim=machines=2,jitter=5us
#include <orrery/task.h>
#include <string.h>

#include "check.h"

message Nothing { int n; };  // so that main is the first task

static void stop_it(void* argument, size_t size) {
  orrery_task t;
  CHECK(size == sizeof t);
  memcpy(&t, argument, sizeof t);
  CHECK(orrery_stop(t) == ORRERY_OK);
}

int main(void) {
  const orrery_task me = orrery_self();
  orrery_message m;
  CHECK(orrery_create(stop_it, &me, sizeof me, orrery_anywhere(), NULL) == ORRERY_OK);
  CHECK(orrery_receive(&m, ORRERY_FOREVER) == ORRERY_STOPPED);
  (void)orrery_receive(&m, ORRERY_FOREVER);
  return 3;
}
