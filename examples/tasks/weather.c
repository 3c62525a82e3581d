// SPDX-License-Identifier: Apache-2.0
// A weather service: stations that are found by their names, and clients that subscribe to them
// (Gingras 2018, section 4.6).
//
//   ./weather                                          stations and clients in one program
//   ./weather --orrery-world=demo station Montreal     a station in a program of its own,
//   ./weather --orrery-world=demo client Montreal 5    and a client in another
//
// run: ./weather --orrery-pes=2
// run: ./weather --orrery-nodes=3 --orrery-pes=1
// run: ./weather --orrery-sim=machines=3,jitter=20us --orrery-quiet
// run: w=weather-$$; ./weather --orrery-world=$w station Oslo & ./weather --orrery-world=$w client Oslo 3; kill $! || true; wait || true
// run: w=weather-$$; exec 3< <(./weather --orrery-world=$w client Oslo 1000000000); read -u 3; ./weather --orrery-world=$w station Oslo & read -u 3; kill -9 $!; tail -1 <&3 | grep 'station has ended'
#include <orrery/task.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

message StationName { char* name; };
message Visit {
  char* name;
  int wanted;
};
message Subscriber { orrery_task client; };
message Reading {
  char* place;
  int hour;
  int count;
  double celsius[count];
};

task WeatherClient {
  tag VISIT(Visit);
  tag READING(Reading);
  tag LEFT();
  tag STATION_ENDED();
  int wanted = 0;
  bool done;
};

// --- the service ---------------------------------------------------------------------------------

task WeatherStation {
  tag NAME(StationName);
  tag SUBSCRIBE(Subscriber);
  tag UNSUBSCRIBE(Subscriber);
  char name[64];
  int hour = 0;
  int count = 0;
  orrery_task clients[1000];
};

static void WeatherStation_handle_NAME(WeatherStation this, StationName message) {
  snprintf(this->name, sizeof this->name, "%s", message->name);
}

static void WeatherStation_handle_SUBSCRIBE(WeatherStation this, Subscriber message) {
  if (this->count < 1000) this->clients[this->count++] = message->client;
}

static void WeatherStation_handle_UNSUBSCRIBE(WeatherStation this, Subscriber message) {
  for (int i = 0; i < this->count; i++)
    if (orrery_task_same(this->clients[i], message->client)) this->clients[i] = this->clients[--this->count];
  WeatherClient_send_LEFT(message->client);
}

static void WeatherStation_start(WeatherStation this) {
  WeatherStation_receive(this);  // its name
  if (orrery_set_name(this->taskID, this->name) != ORRERY_OK) orrery_log("%s", orrery_error());
  do {
    while (!orrery_message_immediate())  // clients that come and go
      if (WeatherStation_receive(this) != ORRERY_OK) return;
    double celsius[] = {10 + this->hour % 24, 5 + this->hour % 12};
    struct Reading reading = {this->name, this->hour++, 2, celsius};
    for (int i = 0; i < this->count;) {
      const orrery_status said = WeatherClient_try_send_READING(this->clients[i], &reading);
      if (said == ORRERY_GONE || said == ORRERY_NODE_LOST) {
        this->clients[i] = this->clients[--this->count];  // it has crashed
      } else {
        i++;  // who is too slow misses one
      }
    }
  } while (orrery_sleep(1000000) == ORRERY_OK);
}

// --- a client ------------------------------------------------------------------------------------

static void WeatherClient_handle_VISIT(WeatherClient this, Visit message) {
  orrery_task station;
  this->wanted = message->wanted;
  if (orrery_find(message->name, &station, ORRERY_FOREVER) != ORRERY_OK) orrery_exit();
  orrery_watch(station, WeatherClient_STATION_ENDED);
  WeatherStation_send_SUBSCRIBE(station, &(struct Subscriber){this->taskID});
  while (this->wanted > 0 && !this->done) WeatherClient_receive(this);
  if (!this->done) WeatherStation_send_UNSUBSCRIBE(station, &(struct Subscriber){this->taskID});
  while (!this->done) WeatherClient_receive(this);
}

static void WeatherClient_handle_READING(WeatherClient this, Reading message) {
  if (this->wanted-- <= 0) return;
  printf("%s, hour %d: %.0f to %.0f degrees\n", message->place, message->hour, message->celsius[1],
         message->celsius[0]);
}

static void WeatherClient_handle_LEFT(WeatherClient this) { this->done = true; }

static void WeatherClient_handle_STATION_ENDED(WeatherClient this) {
  if (!this->done) puts("the station has ended");
  this->done = true;
}

static void WeatherClient_start(WeatherClient this) { WeatherClient_receive(this); }

// --- the program ---------------------------------------------------------------------------------

static orrery_task station(char* name) {
  orrery_task task = WeatherStation_create();
  WeatherStation_send_NAME(task, &(struct StationName){name});
  return task;
}

static orrery_task client(char* name, int wanted) {
  orrery_task task = WeatherClient_create();
  printf("waiting for %s\n", name);
  WeatherClient_send_VISIT(task, &(struct Visit){name, wanted});
  return task;
}

int main(int argc, char** argv) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (argc > 2 && strcmp(argv[1], "station") == 0) return orrery_join(station(argv[2]), ORRERY_FOREVER) != ORRERY_OK;
  if (argc > 2 && strcmp(argv[1], "client") == 0) {
    const int wanted = argc > 3 ? atoi(argv[3]) : 3;
    return orrery_join(client(argv[2], wanted), ORRERY_FOREVER) != ORRERY_OK;
  }
  char* names[] = {"Montreal", "Oslo"};
  orrery_task clients[6];
  for (int i = 0; i < 6; i++) clients[i] = client(names[i % 2], 3);  // before there are stations
  for (int i = 0; i < 2; i++) station(names[i]);
  for (int i = 0; i < 6; i++)
    if (orrery_join(clients[i], ORRERY_FOREVER) != ORRERY_OK) return EXIT_FAILURE;
}
