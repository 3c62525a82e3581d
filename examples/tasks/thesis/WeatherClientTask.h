// SPDX-License-Identifier: Apache-2.0
// Listing 3.3. The thesis has no definition of it.
#pragma once
#include "IntArrayMsg.h"
#include "TextMsg.h"

task WeatherClientTask {
  tag WEATHER_STATION_NAME_MSG = 0;
  tag POST_WEATHER_MSG = 1;
  int readings = 0;
};
