// SPDX-License-Identifier: Apache-2.0
// A view: it finds its stations by their names, shows what they publish, and notices when one has
// ended or crashed, and when it is back.
#include "airports.h"
#include "screen.h"

#include <stdio.h>
#include <string.h>

enum { MOST = 16 };
static struct airport airports[MOST];
static orrery_task stations[MOST];
static int count = 0;
static int lines = 0;  // that are still to be printed; -1: no limit
static bool in_terminal = false;

static void say(int i, const char* state) {
  airports[i].state = state;
  if (!in_terminal) printf("%s %s\n", airports[i].name, state != NULL ? state : "is here");
}

// The runtime's own message about who is watched, an orrery_ended as bytes: View_start takes it
// before a handler would.
static void ended(const orrery_message* m) {
  orrery_ended end;
  memcpy(&end, m->data, sizeof end);
  for (int i = 0; i < count; i++) {
    if (!orrery_task_same(stations[i], end.task)) continue;
    stations[i] = (orrery_task){0};
    say(i, end.status == ORRERY_NODE_LOST ? "has crashed" : "has ended");
  }
}
static void View_handle_ENDED(View this) { (void)this; }

static void look_for_stations(View this) {
  for (int i = 0; i < count; i++) {
    if (!orrery_task_is_null(stations[i]) || orrery_find(airports[i].name, &stations[i], ORRERY_NOW) != ORRERY_OK)
      continue;
    if (orrery_watch(stations[i], View_ENDED) != ORRERY_OK ||
        Station_send_SUBSCRIBE(stations[i], &(struct Viewer){this->taskID}) != ORRERY_OK) {
      stations[i] = (orrery_task){0};  // it has gone meanwhile
      continue;
    }
    say(i, NULL);
  }
}

static void View_handle_SHOW(View this, Airports message) {
  (void)this;
  count = message->count < MOST ? message->count : MOST;
  lines = message->lines == 0 ? -1 : message->lines;
  for (int i = 0; i < count; i++) {
    snprintf(airports[i].name, sizeof airports[i].name, "%s", message->names[i]);
    airports[i].state = "is waited for";
  }
}

static void View_handle_OBSERVATION(View this, Observation message) {
  (void)this;
  if (lines > 0) lines--;
  for (int i = 0; i < count; i++) {
    struct airport* a = &airports[i];
    if (strcmp(a->name, message->station) != 0) continue;
    a->day = message->day, a->hour = message->hour;
    a->celsius = message->celsius, a->wind = message->wind, a->pressure = message->pressure;
    memmove(a->history + 1, a->history, sizeof a->history - sizeof a->history[0]);
    a->history[0] = message->celsius;
    if (a->known < HISTORY) a->known++;
  }
  if (!in_terminal)
    printf("%s, January %d, %02d:00: %.1f degrees, wind %.1f m/s\n", message->station, message->day, message->hour,
           message->celsius, message->wind);
}

static void View_start(View this) {
  View_receive(this);
  in_terminal = screen_open();
  int64_t next = 0;
  while (lines != 0) {
    if (orrery_now_ns() >= next) {
      look_for_stations(this);
      if (in_terminal) screen_draw(airports, count);
      next = orrery_now_ns() + 50000000;
    }
    orrery_message m;
    const orrery_status said = orrery_receive(&m, 50000000);
    if (said == ORRERY_TIMEOUT) continue;
    if (said != ORRERY_OK) break;
    Observation o = m.tag == View_OBSERVATION ? Observation_open(&m) : NULL;
    if (o != NULL) View_handle_OBSERVATION(this, o);
    if (m.tag == View_ENDED) ended(&m);
    orrery_release(&m);
  }
  if (in_terminal) screen_draw(airports, count);  // what it has seen last
  screen_close();
}
