// SPDX-License-Identifier: Apache-2.0
// What calls do with arguments that make no sense: they return ORRERY_USAGE and say in words of C what is wrong. A time that has passed is no time.
//
// run: --orrery-pes=1
// run: --orrery-pes=2
// run: --orrery-nodes=2 --orrery-pes=1
// run: --orrery-sim=machines=2,jitter=5us --orrery-quiet
#include <orrery/task.h>
#include <string.h>

#include "check.h"

message Text {
  char* text;
  int count;
  int numbers[count];
};
message Link {
  int n;
  Link next;
};

task Sink {
  tag TEXT(Text);
  tag EMPTY(Text);
};
static void Sink_handle_TEXT(Sink this, Text message) { (void)this, (void)message; }
static void Sink_handle_EMPTY(Sink this, Text message) {
  (void)this;
  CHECK(message->count == 0 && message->numbers == NULL);
}
static void Sink_start(Sink this) { Sink_serve(this); }

static void speaks_c(void) {
  static const char* const not_c[] = {"::",     "process",    "remote pointer", "spawn",     "publish",
                                      "lookup", "await_name", "world_pes",      "max_depth", "flat container"};
  for (size_t i = 0; i < sizeof not_c / sizeof *not_c; i++) CHECK(strstr(orrery_error(), not_c[i]) == NULL);
}
// The call failed so, and says that, behind its own name.
#define SAYS(call, status, text)                                     \
  do {                                                               \
    CHECK((call) == (status));                                       \
    CHECK(strncmp(orrery_error(), #call, strcspn(#call, "(")) == 0); \
    CHECK(strstr(orrery_error(), text) != NULL);                     \
    speaks_c();                                                      \
  } while (0)

static void nothing(void* argument, size_t size) { (void)argument, (void)size; }

static void pointers_that_are_null(orrery_task sink) {
  orrery_task t;
  orrery_buffer b = {0};
  orrery_message m;
  CHECK(Sink_send_TEXT(sink, NULL) == ORRERY_USAGE && strcmp(orrery_error(), "orrery_send: the message is NULL") == 0);
  CHECK(Text_try_send(sink, Sink_TEXT, NULL) == ORRERY_USAGE);
  SAYS(orrery_send(sink, 1, NULL, "x", ORRERY_WAIT), ORRERY_USAGE, "the message type is NULL");
  SAYS(orrery_send_bytes(sink, 1, NULL, 3, ORRERY_WAIT), ORRERY_USAGE, "is NULL");
  SAYS(orrery_receive(NULL, ORRERY_NOW), ORRERY_USAGE, "is NULL");
  SAYS(orrery_receive_tag(4, NULL, ORRERY_NOW), ORRERY_USAGE, "is NULL");
  SAYS(orrery_peek(NULL, ORRERY_NOW), ORRERY_USAGE, "is NULL");
  SAYS(orrery_open(NULL, &Text_type), NULL, "the message is NULL");
  SAYS(orrery_open(&m, NULL), NULL, "the message type is NULL");
  SAYS(orrery_clone(&Text_type, NULL), NULL, "the message is NULL");
  SAYS(orrery_clone(NULL, "x"), NULL, "the message type is NULL");
  CHECK(Text_clone(NULL) == NULL);
  orrery_release(NULL);
  SAYS(orrery_create(NULL, NULL, 0, orrery_here(), &t), ORRERY_USAGE, "the function is NULL");
  SAYS(orrery_create(nothing, NULL, 3, orrery_here(), &t), ORRERY_USAGE, "is NULL");
  SAYS(orrery_create(nothing, "x", SIZE_MAX / 2, orrery_here(), &t), ORRERY_NO_MEMORY, "no memory");
  CHECK(orrery_create(nothing, NULL, 0, orrery_here(), NULL) == ORRERY_OK);
  SAYS(orrery_set_name(sink, NULL), ORRERY_USAGE, "the name is NULL");
  SAYS(orrery_remove_name(NULL), ORRERY_USAGE, "the name is NULL");
  SAYS(orrery_find(NULL, &t, ORRERY_NOW), ORRERY_USAGE, "the name is NULL");
  SAYS(orrery_find("x", NULL, ORRERY_NOW), ORRERY_USAGE, "is NULL");
  SAYS(orrery_buffer_make(4, NULL), ORRERY_USAGE, "is NULL");
  SAYS(orrery_buffer_take(NULL, &b), ORRERY_USAGE, "is NULL");
  SAYS(orrery_buffer_take(&b, NULL), ORRERY_USAGE, "is NULL");
  SAYS(orrery_buffer_free(NULL), ORRERY_USAGE, "is NULL");
}

static void tasks_that_are_null(void) {
  const orrery_task none = {0, 0, 0};
  struct Text text = {.text = "x"};
  CHECK(Sink_send_TEXT(none, &text) == ORRERY_USAGE);
  SAYS(orrery_send(none, 1, &Text_type, &text, ORRERY_TRY), ORRERY_USAGE, "the task is null");
  SAYS(orrery_send_bytes(none, 1, "x", 1, ORRERY_WAIT), ORRERY_USAGE, "the task is null");
  SAYS(orrery_join(none, ORRERY_FOREVER), ORRERY_USAGE, "the task is null");
  SAYS(orrery_watch(none, 3), ORRERY_USAGE, "the task is null");
  SAYS(orrery_stop(none), ORRERY_USAGE, "the task is null");
  SAYS(orrery_stop_on_signal(2, none), ORRERY_USAGE, "the task is null");
  SAYS(orrery_set_name(none, "none"), ORRERY_USAGE, "the task is null");
  SAYS(orrery_create(nothing, NULL, 0, orrery_near(none), NULL), ORRERY_USAGE, "the task is null");
}

static void places_and_names(orrery_task sink) {
  orrery_task t;
  char long_name[300];
  memset(long_name, 'x', sizeof long_name - 1);
  long_name[sizeof long_name - 1] = 0;
  SAYS(orrery_create(nothing, NULL, 0, orrery_pe(12345), &t), ORRERY_NO_PLACE, "orrery_pes()");
  SAYS(orrery_create(nothing, NULL, 0, orrery_node(12345), &t), ORRERY_NO_PLACE, "no such PE, node");
  SAYS(orrery_create(nothing, NULL, 0, orrery_machine(12345), &t), ORRERY_NO_PLACE, "no such PE, node");
  SAYS(orrery_create_with_stack(nothing, NULL, 0, SIZE_MAX, orrery_here(), &t), ORRERY_USAGE, "stack");
  SAYS(orrery_set_name(sink, ""), ORRERY_USAGE, "empty");
  SAYS(orrery_set_name(sink, "\xff"), ORRERY_USAGE, "UTF-8");
  SAYS(orrery_set_name(sink, long_name), ORRERY_USAGE, "at most 255");
  SAYS(orrery_find(long_name, &t, ORRERY_NOW), ORRERY_USAGE, "at most 255");
  CHECK(orrery_set_name(sink, "sink") == ORRERY_OK);
  SAYS(orrery_set_name(orrery_self(), "sink"), ORRERY_NAME_TAKEN, "\"sink\"");
  SAYS(orrery_find("sinc", &t, ORRERY_NOW), ORRERY_NAME_NOT_FOUND, "did you mean \"sink\"?");
  SAYS(orrery_find("sinc", &t, 1000), ORRERY_TIMEOUT, "\"sinc\"");
  SAYS(orrery_remove_name("sinc"), ORRERY_NAME_NOT_FOUND, "\"sinc\"");
  SAYS(orrery_join(sink, 1000), ORRERY_TIMEOUT, "has not ended");
  SAYS(orrery_join(orrery_self(), 1000), ORRERY_USAGE, "its own end");
}

static void times_that_have_passed(orrery_task sink) {
  static const int64_t late[] = {-1, -5, -1000000, INT64_MIN};
  for (size_t i = 0; i < sizeof late / sizeof *late; i++) {
    orrery_message m;
    orrery_task t;
    CHECK(orrery_sleep(late[i]) == ORRERY_OK);
    CHECK(orrery_receive(&m, late[i]) == ORRERY_EMPTY);
    CHECK(orrery_receive_tag(3, &m, late[i]) == ORRERY_EMPTY);
    CHECK(orrery_peek(&m, late[i]) == ORRERY_EMPTY);
    CHECK(orrery_find("nobody", &t, late[i]) == ORRERY_NAME_NOT_FOUND);
    CHECK(orrery_join(sink, late[i]) == ORRERY_TIMEOUT);
    orrery_compute(late[i]);
  }
}

static void what_is_too_deep(orrery_task sink) {
  static struct Link links[100];
  for (int i = 0; i < 99; i++) links[i].next = &links[i + 1];
  SAYS(orrery_send(sink, 9, &Link_type, links, ORRERY_WAIT), ORRERY_USAGE, "more than 64 messages deep");
  CHECK(Link_clone(links) == NULL);
  links[60].next = NULL;
  Link copy = Link_clone(links);
  CHECK(copy != NULL);
  free(copy);
}

static void ended(void) {
  orrery_task t;
  CHECK(orrery_create(nothing, NULL, 0, orrery_pe(orrery_pes() - 1), &t) == ORRERY_OK);
  CHECK(orrery_join(t, ORRERY_FOREVER) == ORRERY_OK);
  SAYS(orrery_set_name(t, "late"), ORRERY_GONE, "has ended");
}

int main(void) {
  orrery_task sink;
  CHECK(Sink_create_at(orrery_pe(orrery_pes() - 1), &sink) == ORRERY_OK);
  pointers_that_are_null(sink);
  tasks_that_are_null();
  places_and_names(sink);
  times_that_have_passed(sink);
  what_is_too_deep(sink);
  ended();
  int numbers[1] = {1};
  CHECK(Sink_send_EMPTY(sink, &(struct Text){.numbers = numbers}) == ORRERY_OK);
  CHECK(orrery_stop(sink) == ORRERY_OK && orrery_join(sink, ORRERY_FOREVER) == ORRERY_OK);
  return 0;
}
