// SPDX-License-Identifier: Apache-2.0
// A station: it reads its airport's lines, and publishes one after the other to all who have
// subscribed.
#include "airports.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void Station_handle_START(Station this, Start message) {
  snprintf(this->name, sizeof this->name, "%s", message->station);
  snprintf(this->file, sizeof this->file, "%s", message->file);
  this->microseconds = message->microseconds;
  this->hours = message->hours;
}

static void Station_handle_SUBSCRIBE(Station this, Viewer message) {
  if (this->count < 64) this->viewers[this->count++] = message->view;
}

// station,day,hour,temperature,wind_direction,wind_speed,pressure: false for a line of another
// station, or without a temperature.
static bool parse(char* line, const char* station, struct Observation* o) {
  char* field[7] = {0};
  for (int i = 0; i < 7; i++) field[i] = strsep(&line, ",\n");
  if (field[6] == NULL || strcmp(field[0], station) != 0 || *field[3] == 0) return false;
  o->day = atoi(field[1]);
  o->hour = atoi(field[2]);
  o->celsius = (atof(field[3]) - 32) / 1.8;
  o->wind = atof(field[5]) * 0.44704;
  o->pressure = atof(field[6]);
  return true;
}

static void publish(Station this, const struct Observation* o) {
  for (int i = 0; i < this->count;) {
    const orrery_status said = View_try_send_OBSERVATION(this->viewers[i], o);
    if (said == ORRERY_GONE || said == ORRERY_NODE_LOST) {
      this->viewers[i] = this->viewers[--this->count];  // it has left, or crashed
    } else {
      i++;  // a view that is too slow misses one
    }
  }
}

static void Station_start(Station this) {
  Station_receive(this);
  FILE* file = fopen(this->file, "r");
  if (file == NULL) {
    orrery_log("station %s: %s cannot be read", this->name, this->file);
    return;
  }
  if (orrery_set_name(this->taskID, this->name) != ORRERY_OK) orrery_log("%s", orrery_error());
  // whoever counts is to see the first one
  while (this->hours > 0 && this->count == 0) Station_receive(this);
  char line[256];
  struct Observation o = {.station = this->name};
  for (int published = 0; this->hours == 0 || published < this->hours;) {
    if (fgets(line, sizeof line, file) == NULL) {
      rewind(file);
      continue;
    }
    if (!parse(line, this->name, &o)) continue;
    orrery_status said = ORRERY_OK;
    while (said == ORRERY_OK && !orrery_message_immediate()) said = Station_receive(this);
    if (said != ORRERY_OK) break;
    publish(this, &o);
    published++;
    if (orrery_sleep(this->microseconds * (int64_t)1000) != ORRERY_OK) break;
  }
  fclose(file);
}
