// SPDX-License-Identifier: Apache-2.0
// The sample sort of examples/tasks/sample_sort on two plain threads: the same kernel, memory and steps, with barriers for messages. And its radix sort alone, on one.
#include "../sort.hpp"

#include <algorithm>
#include <barrier>
#include <cstring>
#include <memory>
#include <thread>

using namespace peers;

using piece = std::pair<int*, long>;

static std::vector<piece> sort_by_threads(const std::vector<int>& numbers) {
  constexpr int k = 2;
  struct part {
    std::unique_ptr<int[]> numbers;
    long count;
  };
  part parts[k][k];  // from, to
  int samples[k * SAMPLES];
  int taken[k];
  int splitters[k];
  std::vector<piece> sorted(k);
  std::barrier sampled(k, [&]() noexcept {
    int count = 0;
    for (int b = 0; b < k; ++b) {
      std::memmove(samples + count, samples + b * SAMPLES, sizeof(int) * std::size_t(taken[b]));
      count += taken[b];
    }
    choose_splitters(samples, count, k, splitters);
  });
  std::barrier propagated(k);
  const long n = long(numbers.size());
  auto bucket = [&](int b) {
    const long first = n / k * b, count = (b == k - 1 ? n : n / k * (b + 1)) - first;
    const int* const mine = numbers.data() + first;
    taken[b] = take_samples(mine, count, samples + b * SAMPLES);
    sampled.arrive_and_wait();
    long counts[k];
    int* ends[k];
    count_parts(mine, count, splitters, k, counts);
    for (int to = 0; to < k; ++to) {
      parts[b][to] = {std::make_unique_for_overwrite<int[]>(std::size_t(counts[to])), counts[to]};
      ends[to] = parts[b][to].numbers.get();
    }
    fill_parts(mine, count, splitters, k, ends);
    propagated.arrive_and_wait();
    long all = 0;
    for (auto& from : parts) all += from[b].count;
    int* const own = static_cast<int*>(std::malloc(sizeof(int) * std::size_t(all + 1)));
    int* end = own;
    for (auto& from : parts) {
      end = std::copy_n(from[b].numbers.get(), from[b].count, end);
      from[b].numbers.reset();
    }
    sort_numbers(own, all, RADIX);
    sorted[std::size_t(b)] = {own, all};
  };
  std::thread other(bucket, 1);
  bucket(0);
  other.join();
  return sorted;
}

int main() {
  measure_sort("threads_sort_100m_s", sort_by_threads);
  measure_sort("radix_sort_100m_s", [](std::vector<int>& numbers) {
    sort_numbers(numbers.data(), long(numbers.size()), RADIX);
    return std::vector<piece>{{numbers.data(), long(numbers.size())}};
  });
}
