// SPDX-License-Identifier: Apache-2.0
// Latencies in buckets, 16 for each power of two: a quantile is at most 6% too high.
#pragma once

#include <stdint.h>

enum { BUCKETS = 64 * 16 };

static inline int bucket_of(int64_t ns) {
  if (ns < 16) return ns < 0 ? 0 : (int)ns;
  const int bits = 63 - __builtin_clzll((unsigned long long)ns);
  return (bits - 3) * 16 + (int)((ns >> (bits - 4)) & 15);
}
static inline double end_of_bucket_us(int bucket) {
  if (bucket < 16) return (bucket + 1) / 1e3;
  return (double)((int64_t)(16 + bucket % 16 + 1) << (bucket / 16 - 1)) / 1e3;
}
// The latency that so many of all have, at most.
static inline double quantile_us(const long* counts, double share) {
  double all = 0, sum = 0;
  for (int i = 0; i < BUCKETS; i++) all += (double)counts[i];
  for (int i = 0; i < BUCKETS; i++) {
    sum += (double)counts[i];
    if (counts[i] != 0 && sum >= share * all) return end_of_bucket_us(i);
  }
  return 0;
}
