// SPDX-License-Identifier: Apache-2.0
// A bucket: it takes samples of its part of the array, gets splitters, gives each number to the
// bucket that it belongs to, and sorts what it has got.
#include "sample_sort.h"

#include <stdlib.h>
#include <string.h>

static double seconds_since(int64_t begin) { return (double)(orrery_now_ns() - begin) / 1e9; }

static void Bucket_handle_REGION(Bucket this, Region message) {
  const int64_t begin = orrery_now_ns();
  this->region = *message;
  this->received = calloc((size_t)message->buckets, sizeof *this->received);
  this->counts = calloc((size_t)message->buckets, sizeof *this->counts);
  int samples[SAMPLES];
  const int count = take_samples((const int*)message->numbers, message->count, samples);
  this->phases.sample = seconds_since(begin);
  this->sampled_at = orrery_now_ns();
  Sample_send(message->sorter, SAMPLE, &(struct Sample){count, samples});
}

// The parts are written into buffers, which are passed on without a copy.
static void Bucket_handle_SPLITTERS(Bucket this, Splitters message) {
  this->phases.splitters = seconds_since(this->sampled_at);
  const int64_t begin = orrery_now_ns();
  const int* numbers = (const int*)this->region.numbers;
  const int k = message->buckets;
  struct Part* parts = calloc((size_t)k, sizeof *parts);
  int** ends = calloc((size_t)k, sizeof *ends);
  long* counts = calloc((size_t)k, sizeof *counts);
  count_parts(numbers, this->region.count, message->values, k, counts);
  for (int b = 0; b < k; b++) {
    parts[b].count = counts[b];
    if (orrery_buffer_make(sizeof(int) * (size_t)counts[b], &parts[b].numbers) != ORRERY_OK) {
      orrery_log("%s", orrery_error());
      exit(EXIT_FAILURE);
    }
    ends[b] = parts[b].numbers.data;
  }
  fill_parts(numbers, this->region.count, message->values, k, ends);
  for (int b = 0; b < k; b++) Bucket_send_PART(message->others[b], &parts[b]);
  free(counts), free(ends), free(parts);
  this->phases.propagation = seconds_since(begin);
}

static void Bucket_handle_PART(Bucket this, Part message) {
  this->counts[this->parts] = message->count;
  this->count += message->count;
  orrery_buffer_take(&message->numbers, &this->received[this->parts++]);
}

static int* rebuild(Bucket this) {
  int* all = malloc(sizeof(int) * (size_t)(this->count + 1));
  int* end = all;
  for (int i = 0; i < this->parts; i++) {
    if (this->counts[i] != 0) memcpy(end, this->received[i].data, sizeof(int) * (size_t)this->counts[i]);
    end += this->counts[i];
    orrery_buffer_free(&this->received[i]);
  }
  return all;
}

static void Bucket_start(Bucket this) {
  do {
    if (Bucket_receive(this) != ORRERY_OK) return;
  } while (this->parts < this->region.buckets || this->parts == 0);
  int64_t begin = orrery_now_ns();
  int* numbers = rebuild(this);
  this->phases.rebuild = seconds_since(begin);
  begin = orrery_now_ns();
  sort_numbers(numbers, this->count, (enum sorting)this->region.sorting);
  this->phases.sort = seconds_since(begin);
  Sorted_send(this->region.sorter, SORTED, &(struct Sorted){(uintptr_t)numbers, this->count, this->phases});
  free(this->received), free(this->counts);
}
