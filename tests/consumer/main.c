// SPDX-License-Identifier: Apache-2.0
#include <orrery/task.h>
#include <string.h>

static void echo(void* argument, size_t size) {
  orrery_task to;
  if (size == sizeof to) {
    memcpy(&to, argument, sizeof to);
    orrery_send_bytes(to, 1, "hello", 6, ORRERY_WAIT);
  }
}

static int main_task(int argc, char** argv) {
  (void)argc;
  (void)argv;
  const orrery_task me = orrery_self();
  orrery_message m;
  if (orrery_create(echo, &me, sizeof me, orrery_anywhere(), NULL) != ORRERY_OK) return 1;
  if (orrery_receive(&m, ORRERY_FOREVER) != ORRERY_OK) return 2;
  const int same = strcmp(m.data, "hello") == 0;
  orrery_release(&m);
  return same ? 0 : 3;
}

int main(int argc, char** argv) { return orrery_run(argc, argv, main_task); }
