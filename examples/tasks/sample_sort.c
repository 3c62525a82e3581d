// SPDX-License-Identifier: Apache-2.0
// Sample sort (Gingras 2018, section 4.4): a bucket task on each PE takes samples of its part of the array, gets splitters made of all samples, sends each value
// to the bucket that it belongs to, and sorts what it has got. The array and the sorted buckets are passed as references, which are good inside a node.
//
//   ./sample_sort [N] [buckets]     sorts N random numbers, checks the result, and prints the phases of table 4.2
//
// run: ./sample_sort 200000 --orrery-pes=2
// run: ./sample_sort 50000 7 --orrery-pes=2
// run: ./sample_sort 3 4 --orrery-pes=1
// run: ./sample_sort 50000 --orrery-sim=pes=4,jitter=3us --orrery-quiet
#include <orrery/task.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

message Region {
  uintptr_t numbers;
  long count;
  int buckets;
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
  int values[count];
};
message Sorted {
  uintptr_t numbers;
  long count;
  double propagation_ms;
  double sort_ms;
};

// --- the order of numbers -------------------------------------------------------------------------------------------

static int by_value(const void* a, const void* b) {
  const int x = *(const int*)a, y = *(const int*)b;
  return (x > y) - (x < y);
}

// The first splitter that is above the value; values go to the bucket of that number.
static int bucket_of(int value, const int* splitters, int count) {
  int low = 0;
  while (low < count) {
    const int middle = (low + count) / 2;
    if (value < splitters[middle]) {
      count = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

static double ms_since(int64_t begin) { return (double)(orrery_now_ns() - begin) / 1e6; }

// --- a bucket -------------------------------------------------------------------------------------------------------

enum { SAMPLES = 64 };

task Bucket {
  tag REGION(Region);
  tag SPLITTERS(Splitters);
  tag PART(Part);
  struct Region region;
  int* values;
  long count = 0;
  int parts = 0;
  double propagation_ms;
};

// What main receives.
enum { SAMPLE, SORTED };

static void Bucket_handle_REGION(Bucket this, Region message) {
  this->region = *message;
  const int* numbers = (const int*)message->numbers;
  int samples[SAMPLES];
  const int count = message->count < SAMPLES ? (int)message->count : SAMPLES;
  for (int i = 0; i < count; i++) samples[i] = numbers[i * (message->count / count)];
  Sample_send(message->sorter, SAMPLE, &(struct Sample){count, samples});
}

static void Bucket_handle_SPLITTERS(Bucket this, Splitters message) {
  const int64_t begin = orrery_now_ns();
  const int* numbers = (const int*)this->region.numbers;
  const int k = message->buckets;
  // Values of one bucket lie together: `parts` has them in the order of the buckets.
  long* ends = calloc((size_t)k + 1, sizeof *ends);
  int* parts = malloc(sizeof(int) * (size_t)(this->region.count + 1));
  for (long i = 0; i < this->region.count; i++) ends[bucket_of(numbers[i], message->values, k - 1) + 1]++;
  for (int b = 0; b < k; b++) ends[b + 1] += ends[b];
  for (long i = 0; i < this->region.count; i++)
    parts[ends[bucket_of(numbers[i], message->values, k - 1)]++] = numbers[i];
  for (int b = 0; b < k; b++) {  // now ends[b] is the end of the part of b
    const long first = b == 0 ? 0 : ends[b - 1];
    Bucket_send_PART(message->others[b], &(struct Part){ends[b] - first, parts + first});
  }
  free(ends);
  free(parts);
  this->propagation_ms = ms_since(begin);
}

static void Bucket_handle_PART(Bucket this, Part message) {
  if (message->count != 0) {
    this->values = realloc(this->values, sizeof(int) * (size_t)(this->count + message->count));
    memcpy(this->values + this->count, message->values, sizeof(int) * (size_t)message->count);
    this->count += message->count;
  }
  this->parts++;
}

static void Bucket_start(Bucket this) {
  do {
    if (Bucket_receive(this) != ORRERY_OK) return;
  } while (this->parts == 0 || this->parts < this->region.buckets);
  const int64_t begin = orrery_now_ns();
  if (this->count != 0) qsort(this->values, (size_t)this->count, sizeof(int), by_value);
  Sorted_send(this->region.sorter, SORTED,
              &(struct Sorted){(uintptr_t)this->values, this->count, this->propagation_ms, ms_since(begin)});
}

// --- main: the sorter -----------------------------------------------------------------------------------------------

static void receive(uint64_t tag, orrery_message* message) {
  if (orrery_receive_tag(tag, message, ORRERY_FOREVER) != ORRERY_OK) orrery_exit();
}

// Gives the splitters of all samples to the buckets.
static void split(const orrery_task* buckets, int k) {
  int* samples = malloc(sizeof(int) * (size_t)k * SAMPLES);
  int* splitters = calloc((size_t)k, sizeof(int));
  int count = 0;
  for (int b = 0; b < k; b++) {
    orrery_message m;
    receive(SAMPLE, &m);
    const Sample sample = Sample_open(&m);
    if (sample->count != 0) memcpy(samples + count, sample->values, sizeof(int) * (size_t)sample->count);
    count += sample->count;
    orrery_release(&m);
  }
  qsort(samples, (size_t)count, sizeof(int), by_value);
  for (int b = 1; b < k && count != 0; b++) splitters[b - 1] = samples[(long)b * count / k];
  for (int b = 0; b < k; b++)
    Bucket_send_SPLITTERS(buckets[b], &(struct Splitters){k, (orrery_task*)buckets, k - 1, splitters});
  free(samples);
  free(splitters);
}

// One bucket's numbers are in order and not below those of the bucket before; counts them and adds them up.
static bool check(const struct Sorted* bucket, int* last, long* count, long long* sum) {
  const int* numbers = (const int*)bucket->numbers;
  for (long i = 0; i < bucket->count; i++) {
    if (numbers[i] < *last) return false;
    *last = numbers[i];
    *sum += numbers[i];
  }
  *count += bucket->count;
  return true;
}

int main(int argc, char** argv) {
  const long n = argc > 1 ? atol(argv[1]) : 10000000;
  const int k = argc > 2 ? atoi(argv[2]) : (int)orrery_pes();
  if (n < 0 || k < 1) return fprintf(stderr, "usage: sample_sort [N] [buckets]\n");
  int64_t begin = orrery_now_ns();
  int* numbers = malloc(sizeof(int) * (size_t)(n + 1));
  uint64_t random = 88172645463325252u;
  long long sum = 0;
  for (long i = 0; i < n; i++) {
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    numbers[i] = (int)(random >> 33);
    sum += numbers[i];
  }
  const double read_ms = ms_since(begin);

  begin = orrery_now_ns();
  orrery_task* buckets = calloc((size_t)k, sizeof *buckets);
  for (int b = 0; b < k; b++) {
    const orrery_place place = orrery_pe(orrery_this_pe() + (uint32_t)b % orrery_pes());
    if (Bucket_create_at(place, &buckets[b]) != ORRERY_OK) return fprintf(stderr, "%s\n", orrery_error());
    const long first = n / k * b, end = b == k - 1 ? n : n / k * (b + 1);
    Bucket_send_REGION(buckets[b], &(struct Region){(uintptr_t)(numbers + first), end - first, k, orrery_self()});
  }
  split(buckets, k);
  struct Sorted* sorted = calloc((size_t)k, sizeof *sorted);
  for (int left = k; left > 0; left--) {
    orrery_message m;
    receive(SORTED, &m);
    for (int b = 0; b < k; b++)
      if (orrery_task_same(m.sender, buckets[b])) sorted[b] = *Sorted_open(&m);
    orrery_release(&m);
  }
  const double wait_ms = ms_since(begin);

  int last = INT32_MIN;
  long count = 0;
  long long sorted_sum = 0;
  bool good = true;
  for (int b = 0; b < k; b++) good = check(&sorted[b], &last, &count, &sorted_sum) && good;
  good = good && count == n && sorted_sum == sum;
  printf("%ld numbers, %d buckets: %s; generated in %.1f ms, sorted in %.1f ms\n", n, k, good ? "sorted" : "WRONG",
         read_ms, wait_ms);
  for (int b = 0; b < k; b++)
    printf("bucket %d: %ld numbers, propagation %.1f ms, sort %.1f ms\n", b, sorted[b].count, sorted[b].propagation_ms,
           sorted[b].sort_ms);
  for (int b = 0; b < k; b++) free((void*)sorted[b].numbers);
  free(sorted), free(buckets), free(numbers);
  return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
