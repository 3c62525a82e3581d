// SPDX-License-Identifier: Apache-2.0
// The listings of the thesis (Gingras 2018), corrected: each file says what. Listing A.1 is main.
// Corrected: it waits for its task, as the system ends with main; it creates the tasks of the other
// listings, too.
//
// run: ./thesis --orrery-pes=2
// run: ./thesis --orrery-nodes=3 --orrery-pes=1
// run: ./thesis --orrery-sim=machines=2,jitter=5us --orrery-quiet
#include "SimpleTask.h"
#include "TaskA.h"
#include "WeatherClientTask.h"

#include <stdio.h>
#include <stdlib.h>

extern orrery_task WeatherStationTask_create(void);

static void tell_name(orrery_task to, char* name) {
  TextMsg text = TextMsg_create(0);
  text->setMsg(text, name);
  send(NULL, (Message)text, to);
  text->destroy(text);
}

/**
 * Start a simple task main example
 */
int main(int argc, char* argv[]) {
  (void)argc;
  (void)argv;
  // Create the system
  Comm = System_create();
  printf("System addr %p\n", (void*)Comm);
  printf("System shared data addr %p\n", Comm->data);

  repository_set_name(NULL, "main");
  orrery_task task_a = TaskA_create();
  orrery_task simple_task = SimpleTask_create();
  printf("Simple task id = %u\n", simple_task.slot);

  orrery_task client = WeatherClientTask_create();
  tell_name(client, "Montreal");
  tell_name(WeatherStationTask_create(), "Montreal");

  // The client is told of the weather until the system ends.
  if (Comm->receive(Comm, orrery_self()) == NULL) return EXIT_FAILURE;
  if (orrery_join(task_a, ORRERY_FOREVER) != ORRERY_OK) return EXIT_FAILURE;
  if (orrery_join(simple_task, ORRERY_FOREVER) != ORRERY_OK) return EXIT_FAILURE;
  return EXIT_SUCCESS;
}
