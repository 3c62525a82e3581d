// SPDX-License-Identifier: Apache-2.0
// Sorting for peers: the random numbers of examples/tasks/sample_sort, as many, and the check of the result.
#pragma once

#include "common.hpp"

extern "C" {
#include "../../examples/tasks/sample_sort/kernel.c"
}

#include <climits>

namespace peers {

// A smoke run sorts a thousandth.
inline long how_many() { return seconds() < 1 ? 100'000 : 100'000'000; }

inline std::vector<int> random_numbers(long n) {
  std::vector<int> numbers(static_cast<std::size_t>(n));
  std::uint64_t random = 88172645463325252u;
  for (int& each : numbers) {
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    each = int(random >> 33);
  }
  return numbers;
}

// Measures sort(numbers), which returns pieces {begin, count} that are the sorted numbers one behind the other.
template <class Sort>
void measure_sort(const char* metric, Sort sort) {
  auto numbers = random_numbers(how_many());
  long long sum = 0, sorted_sum = 0;
  for (int each : numbers) sum += each;
  const auto begin = now_ns();
  const auto pieces = sort(numbers);
  const double s = double(now_ns() - begin) * 1e-9;
  int last = INT_MIN;
  long all = 0;
  for (const auto& [at, count] : pieces)
    if (!check_order(at, count, &last, &all, &sorted_sum)) all = -1;
  if (all != how_many() || sum != sorted_sum) {
    std::fputs("the numbers are not sorted\n", stderr);
    std::exit(1);
  }
  report(metric, s);
}

}  // namespace peers
