// SPDX-License-Identifier: Apache-2.0
// exit in a task ends the whole OS process, with its code, after atexit; others see that the node was lost.
//
// run: here --orrery-pes=2; test $? = 7
// run: here --orrery-sim=machines=2; test $? = 7
// run: there --orrery-nodes=2 --orrery-pes=1 --orrery-failed-exit=0
#include <orrery/task.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

message Where { int code; };
task Ending { tag END(Where); };
static void at_exit(void) { (void)!write(2, "atexit\n", 7); }
static void Ending_handle_END(Ending this, Where message) {
  (void)this;
  atexit(at_exit);
  if (message->code == 0) _exit(0);
  exit(message->code);
}
static void Ending_start(Ending this) { Ending_receive(this); }

// In a child of its own, whose code is to be that of exit.
static int here(int argc, char** argv) {
  (void)argc, (void)argv;
  orrery_task t = Ending_create();
  orrery_message m;
  CHECK(Ending_send_END(t, &(struct Where){7}) == ORRERY_OK);
  orrery_receive(&m, ORRERY_FOREVER);
  return 1;
}

static int there(void) {
  orrery_task t;
  orrery_message m;
  orrery_ended ended;
  CHECK(Ending_create_at(orrery_node(1), &t) == ORRERY_OK);
  CHECK(orrery_watch(t, 5) == ORRERY_OK);
  CHECK(Ending_send_END(t, &(struct Where){9}) == ORRERY_OK);
  CHECK(orrery_join(t, ORRERY_FOREVER) == ORRERY_NODE_LOST);
  CHECK(orrery_receive_tag(5, &m, ORRERY_FOREVER) == ORRERY_OK);
  memcpy(&ended, m.data, sizeof ended);
  orrery_release(&m);
  CHECK(ended.status == ORRERY_NODE_LOST);
  CHECK(Ending_send_END(t, &(struct Where){9}) == ORRERY_NODE_LOST);
  CHECK(orrery_create(NULL, NULL, 0, orrery_here(), NULL) == ORRERY_USAGE);
  return 0;
}

int main(int argc, char** argv) { return argc > 1 && strcmp(argv[1], "there") == 0 ? there() : here(argc, argv); }
