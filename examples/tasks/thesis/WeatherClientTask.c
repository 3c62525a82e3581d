// SPDX-License-Identifier: Apache-2.0
// Listing 3.3. Corrected: it has a case for the readings too. The rest of the client is not in the
// thesis.
#include "WeatherClientTask.h"
#include "IntMsg.h"

#include <stdio.h>

static void start(WeatherClientTask this) {
  repository_set_name(this, "client");
  receive(this);
  while (true) receive(this);
}

static void receive(WeatherClientTask this) {
  int tag = Comm->getMsgTag(Comm, this->taskID);

  // Looping until a message is present
  while (tag < 0) {
    tag = Comm->getMsgTag(Comm, this->taskID);
  }

  Message msg;

  // match the message to the right message "handler"
  switch (tag) {
    case WEATHER_STATION_NAME_MSG:
      msg = Comm->receive(Comm, this->taskID);
      handle_WeatherStationNameMsg(this, (TextMsg)msg);
      break;
    case POST_WEATHER_MSG:
      msg = Comm->receive(Comm, this->taskID);
      handle_PostWeatherMsg(this, (IntArrayMsg)msg);
      break;
    default:
      Comm->dropMsg(Comm, this->taskID);
  }
}

static void handle_WeatherStationNameMsg(WeatherClientTask this, TextMsg textMsg) {
  orrery_task station = repository_wait_id(this, textMsg->getMsg(textMsg));
  TextMsg subscribe = TextMsg_create(1);
  subscribe->setMsg(subscribe, "client");
  send(this, (Message)subscribe, station);
  subscribe->destroy(subscribe);
}

static void handle_PostWeatherMsg(WeatherClientTask this, IntArrayMsg temp_msg) {
  if (++this->readings > 3) return;
  printf("Station %d says %d degrees\n", temp_msg->getValue(temp_msg, 0), temp_msg->getValue(temp_msg, 1));
  if (this->readings < 3) return;
  IntMsg enough = IntMsg_create(0);
  enough->setValue(enough, this->readings);
  send(this, (Message)enough, repository_wait_id(this, "main"));
  enough->destroy(enough);
}
