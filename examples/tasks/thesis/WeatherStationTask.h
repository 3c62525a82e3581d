// SPDX-License-Identifier: Apache-2.0
// Listing 4.1. The thesis has no definition of it.
#pragma once
#include "IntMsg.h"
#include "TextMsg.h"

task WeatherStationTask {
  tag WEATHER_STATION_NAME_MSG = 0;
  tag SUBSCRIBE_MSG = 1;
  char station_name[32];
  int sub_count = 0;
  orrery_task subs[16];
};
