// SPDX-License-Identifier: Apache-2.0
// What the sorter and its buckets send each other (Gingras 2018, figure 4.2).
#pragma once

#include "kernel.h"

#include <orrery/task.h>
#include <stdint.h>

message Region {
  uintptr_t numbers;  // a reference, which is good inside a node
  long count;
  int buckets;
  int sorting;
  orrery_task sorter;
};
message Sample {
  int count;
  int values[count];
};
message Splitters {
  int buckets;
  orrery_task others[buckets];
  int splitters;
  int values[splitters];
};
message Part {
  long count;
  buffer numbers;
};
// The times of table B.2, in seconds.
struct phases {
  double sample, splitters, propagation, rebuild, sort;
};
message Sorted {
  uintptr_t numbers;
  long count;
  struct phases phases;
};

task Bucket {
  tag REGION(Region);
  tag SPLITTERS(Splitters);
  tag PART(Part);
  struct Region region;
  int parts = 0;
  long count = 0;
  orrery_buffer* received;
  long* counts;
  int64_t sampled_at;
  struct phases phases;
};

// The messages that the sorter receives.
enum { SAMPLE, SORTED };
