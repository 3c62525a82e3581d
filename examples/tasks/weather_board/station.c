// SPDX-License-Identifier: Apache-2.0
#include "weather.h"

#include <stdio.h>

static void Station_handle_SETUP(Station this, Setup message) {
  snprintf(this->place, sizeof this->place, "%s", message->place);
  orrery_task board;
  if (orrery_find(message->board, &board, ORRERY_FOREVER) != ORRERY_OK) {  // an object of C++
    orrery_log("%s", orrery_error());
    return;
  }
  for (int hour = 0; hour < message->hours; hour++) {
    double celsius[] = {hour, hour + 0.5};
    struct Wind wind[] = {{.speed = 3.5 * hour, .degrees = 90}};
    Board_send_READING(board, &(struct Reading){this->place, hour, 2, celsius, hour % 2, wind});
  }
  Board_send_DONE(board);
}

// Turns each pixel, and passes the picture on, without a copy, to a function of C++.
static void Station_handle_PICTURE(Station this, Picture message) {
  (void)this;
  orrery_task viewer;
  if (orrery_find("viewer", &viewer, ORRERY_FOREVER) != ORRERY_OK) return;
  for (size_t i = 0; i < message->pixels.size; i++) ((unsigned char*)message->pixels.data)[i] ^= 0xff;
  Viewer_send_PICTURE(viewer, message);
}

static void Station_start(Station this) { Station_serve(this); }
