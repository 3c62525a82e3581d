// SPDX-License-Identifier: Apache-2.0
// What clients and the server of the database say to each other.
#pragma once

#include "histogram.h"
#include "index.h"
#include "log.h"

#include <orrery/task.h>

enum { MOST_PAIRS = 100 };  // in the answer to a range

struct pair {
  int64_t key;
  value text;
};

message Request {
  orrery_task client;
  uint32_t number;  // the answer has the same
  int operation;
  int limit;  // of a range
  int64_t key;
  int64_t last;  // of a range
  value text;
};
message Answer {
  uint32_t number;
  bool done;  // false: the key is not there, or was there already
  value text;
  int count;
  struct pair pairs[count];
};

message ServerOptions {
  char* log;  // NULL: nothing is kept
  int batch;  // answers that wait for one another's log records
  orrery_strategy strategy;
  orrery_task home;
};
message ServerReport {
  long records, dropped, size;
  long requests, syncs;
  char* problem;
};

task Server {
  tag OPTIONS(ServerOptions);
  tag REQUEST(Request);
  tag STOP();
  struct index* index;
  struct log* log;
  struct waiting* waiting;  // answers that go when the log is on the disk
  int waits = 0;
  int batch = 1;
  bool stopped = false;
  orrery_task home;
  struct ServerReport report;
};

message ClientOptions {
  orrery_task server, home;
  int number, requests, window, keys;
  int pace;  // ns from one request to the next; 0: as fast as answers come
  orrery_strategy strategy;
};
message ClientReport {
  int number;
  long requests;
  long wrong;  // answers that are not what the client expects
  int64_t begin, end;
  char* problem;
  int buckets;
  long counts[buckets];
};

task Client {
  tag OPTIONS(ClientOptions);
  tag ANSWER(Answer);
  tag ENDED();
  struct ClientOptions options;
  struct model* model;
  bool lost = false;
};

// The messages that main receives.
enum { SERVER_REPORT, CLIENT_REPORT };
