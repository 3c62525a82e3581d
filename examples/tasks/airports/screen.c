// SPDX-License-Identifier: Apache-2.0
#include "screen.h"

#include <locale.h>
#include <stdlib.h>
#include <unistd.h>

#include <ncurses.h>

static bool is_open = false;

bool screen_open(void) {
  if (!isatty(STDOUT_FILENO)) return false;
  setlocale(LC_ALL, "");
  if (initscr() == NULL) return false;
  is_open = true;
  atexit(screen_close);
  curs_set(0);
  return true;
}

void screen_close(void) {
  if (is_open) endwin();
  is_open = false;
}

// A line of the last temperatures, the newest on the right.
static void draw_history(int row, int column, int width, const struct airport* a) {
  static const char* const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  double low = 1e9, high = -1e9;
  for (int i = 0; i < a->known; i++) {
    if (a->history[i] < low) low = a->history[i];
    if (a->history[i] > high) high = a->history[i];
  }
  for (int i = 0; i < width && i < a->known; i++) {
    const double part = high > low ? (a->history[i] - low) / (high - low) : 0.5;
    mvaddstr(row, column + width - 1 - i, bars[(int)(part * 7 + 0.5)]);
  }
}

void screen_draw(const struct airport* all, int count) {
  erase();
  attron(A_BOLD);
  mvprintw(0, 0, "%-8s %-8s %8s %8s %10s", "airport", "January", "deg C", "wind m/s", "mbar");
  attroff(A_BOLD);
  const int width = COLS - 50 < HISTORY ? COLS - 50 : HISTORY;
  for (int i = 0; i < count; i++) {
    const struct airport* a = &all[i];
    if (a->state != NULL || a->known == 0) {
      mvprintw(i + 1, 0, "%-8s %s", a->name, a->state != NULL ? a->state : "is here");
      continue;
    }
    mvprintw(i + 1, 0, "%-8s %2d %02d:00 %8.1f %8.1f %10.1f", a->name, a->day, a->hour, a->celsius, a->wind,
             a->pressure);
    draw_history(i + 1, 48, width, a);
  }
  mvprintw(count + 2, 0, "Ctrl-C ends");
  refresh();
}
