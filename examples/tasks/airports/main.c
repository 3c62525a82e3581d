// SPDX-License-Identifier: Apache-2.0
// A weather service (Gingras 2018, section 4.6) with observations of real airports: the hours of a
// week of January 2013 in New York City, in january.csv.
//
//   ./airports                                       three stations and a view in one program
//   ./airports --orrery-world=ny station JFK         a station in a program of its own
//   ./airports --orrery-world=ny view EWR JFK LGA    a view in the terminal, which shows when a
//                                                    station crashes, and when it is back
//
// run: ./airports --orrery-pes=1 | tail -1 | grep "LGA has ended\|EWR has ended\|JFK has ended\|January"
// run: ./airports --orrery-pes=2 | grep -c degrees | grep -x 72
// run: ./airports --orrery-nodes=3 --orrery-pes=1 | grep -c degrees | grep -x 72
// run: ./airports --orrery-sim=machines=3,jitter=20us --orrery-quiet | grep -c degrees | grep -x 72
// run: LC_ALL=C.UTF-8 TERM=xterm script -qec "./airports --orrery-pes=2" /dev/null < /dev/null > airports.screen; LC_ALL=C grep -q "[^[:print:][:cntrl:]]" airports.screen; grep -q "has ended" airports.screen; grep -q "Ctrl-C ends" airports.screen
// run: w=airports-$$; exec 3< <(./airports --orrery-world=$w view -n 1000000 JFK LGA); read -u 3; ./airports --orrery-world=$w station JFK & ./airports --orrery-world=$w station LGA & grep -m1 JFK.*degrees <&3; kill -9 %1; grep -m1 "JFK has crashed" <&3; ./airports --orrery-world=$w station JFK & grep -m1 "JFK is here" <&3; grep -m1 LGA.*degrees <&3; exec 3<&-; kill -9 %2 %3 || true; wait || true
#include "airports.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static orrery_task station(char* name, char* file, int microseconds, int hours) {
  orrery_task task = Station_create();
  Station_send_START(task, &(struct Start){name, file, microseconds, hours});
  return task;
}

static orrery_task view(char** names, int count, int lines) {
  orrery_task task = View_create();
  View_send_SHOW(task, &(struct Airports){count, names, lines});
  return task;
}

// The file lies where the program is started, or where it says.
static char* data(void) {
  char* file = getenv("AIRPORTS_DATA");
  return file != NULL ? file : "january.csv";
}

int main(int argc, char** argv) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (argc > 2 && strcmp(argv[1], "station") == 0) {
    const int milliseconds = argc > 3 ? atoi(argv[3]) : 20;
    return orrery_join(station(argv[2], data(), milliseconds * 1000, 0), ORRERY_FOREVER) != ORRERY_OK;
  }
  if (argc > 2 && strcmp(argv[1], "view") == 0) {
    const bool counts = argc > 4 && strcmp(argv[2], "-n") == 0;
    const int first = counts ? 4 : 2;
    puts("looking for stations");
    orrery_task task = view(argv + first, argc - first, counts ? atoi(argv[3]) : 0);
    orrery_stop_on_signal(2, task);
    return orrery_join(task, ORRERY_FOREVER) != ORRERY_OK;
  }
  char* names[] = {"EWR", "JFK", "LGA"};
  orrery_task task = view(names, 3, 72);
  for (int i = 0; i < 3; i++) station(names[i], data(), 100, 24);
  return orrery_join(task, ORRERY_FOREVER) != ORRERY_OK;
}
