// SPDX-License-Identifier: Apache-2.0
// How tasks end, and how others are told: return, orrery_exit, orrery_stop; join and watch.
//
// run: --orrery-pes=1
// run: --orrery-pes=2
// run: --orrery-nodes=2 --orrery-pes=1
// run: --orrery-sim=machines=2,jitter=5us --orrery-quiet
#include <orrery/task.h>
#include <string.h>

#include "check.h"

message Number { int n; };

// Ends in one of several ways when it is told to, or asked by orrery_stop.
task Ending {
  tag RETURN();
  tag EXIT(Number);
  tag ECHO(Number);
  int ended = 0;
};
enum { ECHOED = 10, ENDED = 20 };

static void Ending_handle_RETURN(Ending this) { this->ended = 1; }
static void Ending_handle_EXIT(Ending this, Number message) {
  if (message->n != 0) orrery_exit();
  (void)this;
}
static void Ending_handle_ECHO(Ending this, Number message) {
  (void)this;
  orrery_task main_task;
  if (orrery_find("main", &main_task, ORRERY_FOREVER) == ORRERY_OK) Number_send(main_task, ECHOED, message);
}
static void Ending_start(Ending this) {
  while (!this->ended && Ending_receive(this) == ORRERY_OK) {
  }
}

static orrery_task create(void) {
  orrery_task t = {0, 0, 0};
  CHECK(Ending_create_at(orrery_pe(orrery_pes() - 1), &t) == ORRERY_OK);
  CHECK(!orrery_task_is_null(t));
  return t;
}

static void expect_end(orrery_task of, uint64_t tag) {
  orrery_message m;
  orrery_ended ended;
  CHECK(orrery_receive_tag(tag, &m, ORRERY_FOREVER) == ORRERY_OK);
  CHECK(m.size == sizeof ended && m.type == 0);
  memcpy(&ended, m.data, sizeof ended);
  orrery_release(&m);
  CHECK(orrery_task_same(ended.task, of) && ended.status == ORRERY_OK);
}

static void join_waits_for_the_end(void) {
  const orrery_task t = create();
  CHECK(orrery_join(t, ORRERY_NOW) == ORRERY_TIMEOUT);
  CHECK(orrery_join(t, 1000000) == ORRERY_TIMEOUT);
  CHECK(strstr(orrery_error(), "has not ended") != NULL);
  CHECK(Ending_send_RETURN(t) == ORRERY_OK);
  CHECK(orrery_join(t, ORRERY_FOREVER) == ORRERY_OK);
  CHECK(orrery_join(t, ORRERY_NOW) == ORRERY_OK);  // it had ended before
  CHECK(orrery_join(orrery_self(), ORRERY_FOREVER) == ORRERY_USAGE);
  CHECK(orrery_join((orrery_task){0, 0, 0}, ORRERY_FOREVER) == ORRERY_USAGE);
}

static void watch_tells_of_the_end(void) {
  const orrery_task t = create(), other = create();
  CHECK(orrery_watch(t, ENDED) == ORRERY_OK);
  CHECK(orrery_watch(t, ENDED + 1) == ORRERY_OK);  // twice is told twice
  CHECK(orrery_watch(other, ENDED + 2) == ORRERY_OK);
  CHECK(Ending_send_ECHO(t, &(struct Number){3}) == ORRERY_OK);
  orrery_message m;
  CHECK(orrery_receive(&m, ORRERY_FOREVER) == ORRERY_OK);  // nobody has ended yet
  CHECK(m.tag == ECHOED && Number_open(&m)->n == 3);
  orrery_release(&m);
  CHECK(Ending_send_EXIT(t, &(struct Number){0}) == ORRERY_OK);
  CHECK(Ending_send_EXIT(t, &(struct Number){1}) == ORRERY_OK);  // orrery_exit in a handler
  expect_end(t, ENDED);
  expect_end(t, ENDED + 1);
  CHECK(orrery_watch(t, ENDED + 3) == ORRERY_OK);  // it has ended: at once
  expect_end(t, ENDED + 3);
  CHECK(orrery_stop(other) == ORRERY_OK);
  expect_end(other, ENDED + 2);
  CHECK(orrery_watch((orrery_task){0, 0, 0}, ENDED) == ORRERY_USAGE);
}

static void stop_comes_behind_what_was_sent(void) {
  const orrery_task t = create();
  for (int i = 0; i < 100; i++) CHECK(Ending_send_ECHO(t, &(struct Number){i}) == ORRERY_OK);
  CHECK(orrery_stop(t) == ORRERY_OK);
  for (int i = 0; i < 100; i++) {
    orrery_message m;
    CHECK(orrery_receive_tag(ECHOED, &m, ORRERY_FOREVER) == ORRERY_OK);
    CHECK(Number_open(&m)->n == i);
    orrery_release(&m);
  }
  CHECK(orrery_join(t, ORRERY_FOREVER) == ORRERY_OK);
}

static void a_name_goes_with_its_task(void) {
  const orrery_task t = create();
  orrery_task found;
  CHECK(orrery_set_name(t, "ending") == ORRERY_OK);
  CHECK(orrery_set_name(orrery_self(), "ending") == ORRERY_NAME_TAKEN);
  CHECK(orrery_find("ending", &found, ORRERY_NOW) == ORRERY_OK && orrery_task_same(found, t));
  CHECK(Ending_send_RETURN(t) == ORRERY_OK && orrery_join(t, ORRERY_FOREVER) == ORRERY_OK);
  CHECK(orrery_find("ending", &found, ORRERY_NOW) == ORRERY_NAME_NOT_FOUND);
  CHECK(orrery_find("ending", &found, 1000000) == ORRERY_TIMEOUT);
}

int main(void) {
  CHECK(orrery_set_name(orrery_self(), "main") == ORRERY_OK);
  join_waits_for_the_end();
  watch_tells_of_the_end();
  stop_comes_behind_what_was_sent();
  a_name_goes_with_its_task();
  return 0;
}
