/* SPDX-License-Identifier: Apache-2.0 */
/* Messages with all kinds of members, for mixed.test.cpp. */
#pragma once

#include <orrery/task/task.h>
#include <time.h>

enum color { RED, GREEN };
struct pair {
  int a, b;
};
typedef unsigned short half;

message Point {
  double x, y;
  char* label;
};
message Everything {
  unsigned long long big : 40, small : 3;
  struct pair pair;
  enum color color;
  char fixed[16];
  const char *text, *other;
  unsigned char count;
  Point corners[count];
  struct {
    short s;
  } inner;
  Point centre;
  char* names[count];
  long total;
  struct pair pairs[total];
  _Bool flags[2][3];
  int bits;
  _Bool bit[bits];
  half halves[bits];
  time_t when;
  Everything next;
  orrery_task from;
};
message Counts {
  char few;
  short a[few];
  enum color some;
  char b[some];
  _Bool one;
  int c[one];
  const unsigned most;
  double const d[most];
  const volatile int fixed[2];
};
message Parcel {
  int number;
  buffer first;
  int count;
  buffer more[count];
};

/* A task of C that sends back what it is sent. */
task Mirror {
  tag EVERYTHING(Everything);
  tag PARCEL(Parcel) = 40;
  tag NOTHING();
};
/* In C++. */
task Sink {
  tag EVERYTHING(Everything);
  tag PARCEL(Parcel) = 40;
  tag NOTHING();
};
