// SPDX-License-Identifier: Apache-2.0
// What stations (in C), a board and a viewer (in C++) send each other. main.cpp includes what
// `orrery-cc --emit-cpp-header weather.h` makes of this.
#pragma once

#include <orrery/task/task.h>

message Wind {
  double speed;
  int degrees;
};
message Reading {
  char* place;
  int hour;
  int count;
  double celsius[count];
  int gusts;
  Wind wind[gusts];
};
message Setup {
  char* place;
  char* board;  // the name of who is given the readings
  int hours;
};
message Picture {
  int width;
  buffer pixels;
};

// In C: station.c.
task Station {
  tag SETUP(Setup);
  tag PICTURE(Picture);
  char place[32];
};

// In C++: main.cpp has an object and a function that receive what these do.
task Board {
  tag READING(Reading);
  tag DONE();
};
task Viewer { tag PICTURE(Picture); };
