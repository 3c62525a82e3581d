// SPDX-License-Identifier: Apache-2.0
// What a view shows: a table in the terminal, or lines where there is none.
#pragma once

#include <stdbool.h>

enum { HISTORY = 60 };
struct airport {
  char name[16];
  const char* state;  // NULL: it is there
  int day, hour;
  double celsius, wind, pressure;
  double history[HISTORY];  // of celsius, the newest first
  int known;
};

// True if there is a terminal, which then belongs to this program until screen_close.
bool screen_open(void);
void screen_draw(const struct airport* all, int count);
void screen_close(void);
