// SPDX-License-Identifier: Apache-2.0
// Listings 3.4 and 4.1. Corrected: taskID is an orrery_task; the loop yields, and so do others run;
// receive is generated. How a client subscribes is not in the thesis: it sends the name under which
// it is found.
#include "WeatherStationTask.h"
#include "IntArrayMsg.h"
#include "WeatherClientTask.h"

#include <stdio.h>
#include <string.h>

/*
 * This is the "main" method for the weather service task
 */
static void start(WeatherStationTask this) {
  printf("Weather station task has been started\n");

  // Receive station name and set repository
  receive(this);
  repository_set_name(this, this->station_name);

  // Main loop
  while (true) {
    // Look for new subscriber
    if (message_immediate(this) == 0) {
      receive(this);
    }

    // Broadcast weather to all subscriber
    IntArrayMsg temp_msg = IntArrayMsg_create(POST_WEATHER_MSG);
    int vals[2] = {(int)this->taskID.slot, 31};
    temp_msg->setValues(temp_msg, 2, vals);  // Mock temperature
    for (int i = 0; i < this->sub_count; i++) {
      send(this, (Message)temp_msg, this->subs[i]);
    }
    temp_msg->destroy(temp_msg);
    message_wait(this);
  }
}

static void handle_WeatherStationNameMsg(WeatherStationTask this, TextMsg textMsg) {
  printf("Weather station received name: %s\n", textMsg->getMsg(textMsg));
  strcpy(this->station_name, textMsg->getMsg(textMsg));
}

static void handle_SubscribeMsg(WeatherStationTask this, TextMsg textMsg) {
  if (this->sub_count < 16) this->subs[this->sub_count++] = repository_wait_id(this, textMsg->getMsg(textMsg));
}
