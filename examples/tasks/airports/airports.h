// SPDX-License-Identifier: Apache-2.0
// A weather service with observations of real airports: what stations and views send each other.
#pragma once

#include <orrery/task.h>

message Start {
  char* station;
  char* file;
  int microseconds;  // between two observations
  int hours;         // so many, and then the station ends; 0: it begins again
};
message Viewer { orrery_task view; };
message Observation {
  char* station;
  int day, hour;
  double celsius;
  double wind;  // in m/s
  double pressure;
};
message Airports {
  int count;
  char* names[count];
  int lines;  // that a view without a terminal prints; 0: no limit
};

task Station {
  tag START(Start);
  tag SUBSCRIBE(Viewer);
  char name[16];
  char file[512];
  int microseconds;
  int hours;
  int count = 0;
  orrery_task viewers[64];
};
task View {
  stack = 1 << 20;  // ncurses needs more than a task has
  tag SHOW(Airports);
  tag OBSERVATION(Observation);
  tag ENDED();
};
