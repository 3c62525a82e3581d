// SPDX-License-Identifier: Apache-2.0
// How a task waits for messages: peek, drop, tags, times, and what errno is behind each call that parks; and that a
// send which only tries waits for nothing.
//
// run: --orrery-pes=1
// run: --orrery-pes=2
// run: --orrery-nodes=2 --orrery-pes=1
// run: --orrery-nodes=2 --orrery-pes=1 --orrery-memory=1M
// run: --orrery-sim=machines=2,jitter=5us --orrery-quiet
#include <errno.h>
#include <orrery/task.h>
#include <string.h>

#include "check.h"

message Text {
  char* text;
  int count;
  int numbers[count];
};
message Other { double d; };

task Echo { tag TEXT(Text); };
static void Echo_handle_TEXT(Echo this, Text message) { (void)this, (void)message; }
static void Echo_start(Echo this) {
  (void)this;
  orrery_message m;
  while (orrery_receive(&m, ORRERY_FOREVER) == ORRERY_OK) {
    errno = EDOM;  // what it is here is no business of others
    Text t = Text_open(&m);
    CHECK(t != NULL && Text_send(m.sender, m.tag, t) == ORRERY_OK);
    orrery_release(&m);
  }
}

static orrery_task echo;
static int numbers[] = {1, 2, 3};

static void ask(uint64_t tag, char* text) {
  CHECK(Text_send(echo, tag, &(struct Text){text, 3, numbers}) == ORRERY_OK);
}

static void finds_nothing_where_nothing_is(void) {
  orrery_message m;
  CHECK(orrery_receive(&m, ORRERY_NOW) == ORRERY_EMPTY);
  CHECK(orrery_receive_tag(7, &m, ORRERY_NOW) == ORRERY_EMPTY);
  CHECK(orrery_peek(&m, ORRERY_NOW) == ORRERY_EMPTY);
  CHECK(orrery_drop() == ORRERY_EMPTY);
  const int64_t begin = orrery_now_ns();
  CHECK(orrery_receive(&m, 3000000) == ORRERY_TIMEOUT);
  CHECK(orrery_peek(&m, 2000000) == ORRERY_TIMEOUT);
  CHECK(orrery_receive_tag(7, &m, 1000000) == ORRERY_TIMEOUT);
  CHECK(orrery_now_ns() - begin >= 6000000);
  CHECK(orrery_message_immediate());
  CHECK(orrery_message_wait() == ORRERY_OK);
}

static void peeks_and_drops(void) {
  orrery_message m;
  ask(1, "one"), ask(2, "two"), ask(3, "three");
  CHECK(orrery_message_notify() == ORRERY_OK);
  CHECK(!orrery_message_immediate());
  CHECK(orrery_peek(&m, ORRERY_FOREVER) == ORRERY_OK);
  CHECK(m.tag == 1 && m.data == NULL && m.size != 0 && orrery_task_same(m.sender, echo));
  CHECK(orrery_peek(&m, ORRERY_NOW) == ORRERY_OK && m.tag == 1);  // it is still there
  CHECK(orrery_drop() == ORRERY_OK);
  CHECK(orrery_receive_tag(3, &m, ORRERY_FOREVER) == ORRERY_OK);
  CHECK(Other_open(&m) == NULL);  // it is of another type
  CHECK(strcmp(Text_open(&m)->text, "three") == 0);
  orrery_release(&m);
  orrery_release(&m);  // does nothing
  CHECK(orrery_receive(&m, ORRERY_NOW) == ORRERY_OK && m.tag == 2);
  Text kept = Text_clone(Text_open(&m));
  orrery_release(&m);
  CHECK(strcmp(kept->text, "two") == 0 && kept->count == 3 && kept->numbers[2] == 3);
  free(kept);
  CHECK(orrery_drop() == ORRERY_EMPTY);
}

static void keeps_errno(void) {
  orrery_message m;
  orrery_task found;
  for (int i = 0; i < 20; i++) {
    ask(1, "errno");
    errno = ENOTTY;
    CHECK(orrery_receive(&m, ORRERY_FOREVER) == ORRERY_OK && errno == ENOTTY);
    orrery_release(&m);
    CHECK(errno == ENOTTY);
    CHECK(orrery_sleep(1000) == ORRERY_OK && errno == ENOTTY);
    CHECK(orrery_yield() == ORRERY_OK && errno == ENOTTY);
    CHECK(orrery_receive(&m, 1000) == ORRERY_TIMEOUT && errno == ENOTTY);
    CHECK(orrery_join(echo, 1000) == ORRERY_TIMEOUT && errno == ENOTTY);
    CHECK(orrery_find("nobody", &found, ORRERY_NOW) == ORRERY_NAME_NOT_FOUND && errno == ENOTTY);
  }
}

static void is_late(void* argument, size_t size) {
  (void)argument, (void)size;
  orrery_message m;
  orrery_task full;
  if (orrery_find("full", &full, ORRERY_FOREVER) != ORRERY_OK) return;
  while (orrery_receive(&m, ORRERY_FOREVER) == ORRERY_OK) orrery_release(&m);
}

static int others_ran = 0;
static void runs(void* argument, size_t size) {
  (void)argument, (void)size;
  others_ran = 1;
}

static void tries_without_waiting(void) {
  static char much[64 << 10];
  orrery_task late, here;
  CHECK(orrery_create(is_late, NULL, 0, orrery_pe(orrery_pes() - 1), &late) == ORRERY_OK);
  CHECK(orrery_create(runs, NULL, 0, orrery_here(), &here) == ORRERY_OK);
  orrery_status said = ORRERY_OK;
  for (int i = 0; i < 3000 && said == ORRERY_OK; i++) said = orrery_send_bytes(late, 1, much, sizeof much, ORRERY_TRY);
  CHECK(said == ORRERY_FULL && !others_ran);
  CHECK(orrery_set_name(orrery_self(), "full") == ORRERY_OK);
  CHECK(orrery_join(here, ORRERY_FOREVER) == ORRERY_OK && others_ran);
  CHECK(orrery_send_bytes(late, 1, much, sizeof much, ORRERY_WAIT) == ORRERY_OK);
  CHECK(orrery_stop(late) == ORRERY_OK && orrery_join(late, ORRERY_FOREVER) == ORRERY_OK);
}

int main(void) {
  CHECK(Echo_create_at(orrery_pe(orrery_pes() - 1), &echo) == ORRERY_OK);
  finds_nothing_where_nothing_is();
  peeks_and_drops();
  keeps_errno();
  tries_without_waiting();
  CHECK(orrery_set_strategy(ORRERY_YIELD) == ORRERY_OK);
  peeks_and_drops();
  CHECK(orrery_set_strategy((orrery_strategy)17) == ORRERY_USAGE);
  CHECK(orrery_stop(echo) == ORRERY_OK && orrery_join(echo, ORRERY_FOREVER) == ORRERY_OK);
  return 0;
}
