// SPDX-License-Identifier: Apache-2.0
// Several worlds in one program: one after the other they run, a second one inside of the first is refused, and nothing of a world is left in the next.
//
// run:
#include <orrery/task.h>
#include <string.h>

#include "check.h"

static int runs = 0;

static void add(void* argument, size_t size) {
  (void)size;
  orrery_task to;
  memcpy(&to, argument, sizeof to);
  const int n = runs;
  CHECK(orrery_send_bytes(to, 1, &n, sizeof n, ORRERY_WAIT) == ORRERY_OK);
}

static int other_main(int argc, char** argv) { return (void)argc, (void)argv, 0; }

static int main_task(int argc, char** argv) {
  CHECK(argc == 2 && strcmp(argv[1], "mine") == 0);
  orrery_task none, self = orrery_self();
  CHECK(orrery_find("only one", &none, ORRERY_NOW) == ORRERY_NAME_NOT_FOUND);
  CHECK(orrery_set_name(self, "only one") == ORRERY_OK);
  runs++;
  for (uint32_t pe = 0; pe < orrery_pes(); pe++)
    CHECK(orrery_create(add, &self, sizeof self, orrery_pe(pe), NULL) == ORRERY_OK);
  for (uint32_t pe = 0; pe < orrery_pes(); pe++) {
    orrery_message m;
    CHECK(orrery_receive(&m, ORRERY_FOREVER) == ORRERY_OK);
    CHECK(*(int*)m.data == runs);
    orrery_release(&m);
  }
  char* words[] = {"inner", NULL};
  CHECK(orrery_run(1, words, other_main) == 1);  // said on stderr: a runtime runs here already
  return 40 + runs;
}

int main(void) {
  static char* const worlds[] = {"--orrery-pes=1", "--orrery-pes=2", "--orrery-sim=machines=3", "--orrery-pes=2"};
  orrery_message m;
  for (int i = 0; i < 4; i++) {
    char* words[] = {"worlds", worlds[i], "mine", NULL};
    const int code = orrery_run(3, words, main_task);
    if (code != 41 + i) return fprintf(stderr, "world %d returned %d\n", i, code);
    if (orrery_receive(&m, ORRERY_NOW) != ORRERY_USAGE || !orrery_task_is_null(orrery_self())) return 3;
  }
  return 0;
}
