// SPDX-License-Identifier: Apache-2.0
#include "kernel.h"

#include <stdlib.h>
#include <string.h>

int take_samples(const int* numbers, long count, int* samples) {
  const int wanted = count < SAMPLES ? (int)count : SAMPLES;
  for (int i = 0; i < wanted; i++) samples[i] = numbers[i * (count / wanted)];
  return wanted;
}

static int by_value(const void* a, const void* b) {
  const int x = *(const int*)a, y = *(const int*)b;
  return (x > y) - (x < y);
}

void choose_splitters(int* samples, int count, int buckets, int* splitters) {
  qsort(samples, (size_t)count, sizeof(int), by_value);
  for (int b = 1; b < buckets; b++) splitters[b - 1] = count != 0 ? samples[(long)b * count / buckets] : 0;
}

// How many splitters are not above the value: the number of its bucket. Without branches, as the
// processor would guess them wrong for each second value.
static inline int bucket_of(int value, const int* splitters, int count) {
  if (count == 0) return 0;
  const int* base = splitters;
  while (count > 1) {
    const int half = count / 2;
    base += value >= base[half - 1] ? half : 0;
    count -= half;
  }
  return (int)(base - splitters) + (value >= *base);
}

void count_parts(const int* numbers, long count, const int* splitters, int buckets, long* counts) {
  memset(counts, 0, sizeof *counts * (size_t)buckets);
  for (long i = 0; i < count; i++) counts[bucket_of(numbers[i], splitters, buckets - 1)]++;
}

void fill_parts(const int* numbers, long count, const int* splitters, int buckets, int** parts) {
  for (long i = 0; i < count; i++) *parts[bucket_of(numbers[i], splitters, buckets - 1)]++ = numbers[i];
}

// By 11 bits at a time, the lowest first; the sign is turned, so that negative numbers come before
// the others.
static bool radix_sort(int* numbers, long count) {
  enum { BITS = 11, DIGITS = 1 << BITS };
  const unsigned sign = 1U << 31;
  unsigned* from = (unsigned*)numbers;
  unsigned* to = (unsigned*)malloc(sizeof *to * (size_t)count);
  if (to == NULL) return false;
  for (int shift = 0; shift < 33; shift += BITS) {
    long ends[DIGITS + 1] = {0};
    for (long i = 0; i < count; i++) ends[((from[i] ^ sign) >> shift & (DIGITS - 1)) + 1]++;
    for (int d = 0; d < DIGITS; d++) ends[d + 1] += ends[d];
    for (long i = 0; i < count; i++) to[ends[(from[i] ^ sign) >> shift & (DIGITS - 1)]++] = from[i];
    unsigned* const swapped = from;
    from = to, to = swapped;
  }
  // after three steps they are in the other memory
  memcpy(numbers, from, sizeof *from * (size_t)count);
  free(from);
  return true;
}

void sort_numbers(int* numbers, long count, enum sorting how) {
  if (count < 2 || (how == RADIX && radix_sort(numbers, count))) return;
  qsort(numbers, (size_t)count, sizeof(int), by_value);
}

bool check_order(const int* numbers, long count, int* last, long* all, long long* sum) {
  for (long i = 0; i < count; i++) {
    if (numbers[i] < *last) return false;
    *last = numbers[i];
    *sum += numbers[i];
  }
  *all += count;
  return true;
}
