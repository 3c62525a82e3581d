// SPDX-License-Identifier: Apache-2.0
// The programs of `./run bench shared` on two plain threads: parallel sorting by regular sampling with the same steps, and
// the stencil of the diffusion as one loop.
#include "../common.hpp"

#include <algorithm>
#include <barrier>
#include <cmath>
#include <random>
#include <thread>

using namespace peers;

namespace {

constexpr std::size_t members = 2;

using keys = std::vector<std::uint32_t>;

// Merges runs that end before these numbers, two and two, as examples/shared/psrs does.
void merge_runs(keys& all, std::vector<std::size_t> ends) {
  keys other(all.size());
  while (ends.size() > 1) {
    std::vector<std::size_t> next;
    std::size_t first = 0;
    for (std::size_t i = 0; i < ends.size(); i += 2) {
      const std::size_t middle = ends[i];
      const std::size_t last = i + 1 < ends.size() ? ends[i + 1] : middle;
      std::merge(all.begin() + long(first), all.begin() + long(middle), all.begin() + long(middle),
                 all.begin() + long(last), other.begin() + long(first));
      next.push_back(last);
      first = last;
    }
    all.swap(other);
    ends = std::move(next);
  }
}

void sort_by_samples(keys& all) {
  std::uint32_t samples[members][members];
  std::size_t cuts[members][members + 1];
  std::barrier meet(members);
  const std::size_t n = all.size();
  const auto member = [&](std::size_t rank) {
    const std::size_t first = n * rank / members, last = n * (rank + 1) / members;
    std::sort(all.begin() + long(first), all.begin() + long(last));
    for (std::size_t i = 0; i < members; ++i) samples[rank][i] = all[first + i * (last - first) / members];
    meet.arrive_and_wait();
    std::vector<std::uint32_t> pivots;
    for (auto& row : samples) pivots.insert(pivots.end(), row, row + members);
    std::sort(pivots.begin(), pivots.end());
    cuts[rank][0] = first;
    for (std::size_t i = 1; i < members; ++i)
      cuts[rank][i] = std::size_t(
          std::upper_bound(all.begin() + long(first), all.begin() + long(last), pivots[i * members]) - all.begin());
    cuts[rank][members] = last;
    meet.arrive_and_wait();
    keys mine;
    std::vector<std::size_t> ends;
    std::size_t to = 0;
    for (auto& cut : cuts) {
      to += cut[rank] - cut[0];
      mine.insert(mine.end(), all.begin() + long(cut[rank]), all.begin() + long(cut[rank + 1]));
      ends.push_back(mine.size());
    }
    merge_runs(mine, std::move(ends));
    meet.arrive_and_wait();
    std::copy(mine.begin(), mine.end(), all.begin() + long(to));
  };
  std::thread other(member, 1);
  member(0);
  other.join();
}

void measure_sort() {
  std::mt19937 random(1);
  keys all(seconds() < 1 ? 100'000 : 100'000'000);
  for (auto& k : all) k = random();
  const auto begin = now_ns();
  sort_by_samples(all);
  const double s = double(now_ns() - begin) * 1e-9;
  if (!std::is_sorted(all.begin(), all.end())) {
    std::fputs("the keys are not sorted\n", stderr);
    std::exit(1);
  }
  report("threads_psrs_100m_s", s);
}

double next_value(double here, double above, double below, double left, double right) {
  return here + 0.2 * (above + below + left + right - 4 * here);
}

void measure_loop() {
  const std::size_t n = seconds() < 1 ? 256 : 2048;
  const int steps = seconds() < 1 ? 4 : 60;
  std::vector<double> a(n * n, 1), b(n * n, 1);
  std::barrier meet(members);
  const auto member = [&](std::size_t rank) {
    const double* from = a.data();
    double* to = b.data();
    for (int step = 0; step < steps; ++step) {
      for (std::size_t i = n * rank / members; i < n * (rank + 1) / members; ++i) {
        const double* const up = from + (i + n - 1) % n * n;
        const double* const down = from + (i + 1) % n * n;
        const double* const row = from + i * n;
        double* const out = to + i * n;
        out[0] = next_value(row[0], up[0], down[0], row[n - 1], row[1]);
        for (std::size_t j = 1; j + 1 < n; ++j) out[j] = next_value(row[j], up[j], down[j], row[j - 1], row[j + 1]);
        out[n - 1] = next_value(row[n - 1], up[n - 1], down[n - 1], row[n - 2], row[0]);
      }
      meet.arrive_and_wait();
      const double* const last = to;
      to = const_cast<double*>(from);
      from = last;
    }
  };
  const auto begin = now_ns();
  std::thread other(member, 1);
  member(0);
  other.join();
  report("loop_mcells", double(n * n) * steps / (double(now_ns() - begin) * 1e-3));
}

}  // namespace

int main() {
  measure_loop();
  measure_sort();
}
