// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the benchmarks measure with.

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace bench {

/// How much to do: enough for a figure, or just enough to see that it runs.
struct effort {
  bool smoke = false;
  [[nodiscard]] int times(int n) const { return smoke ? n / 50 + 1 : n; }
};

using clock = std::chrono::steady_clock;

[[nodiscard]] inline double ns_since(clock::time_point begin) {
  return std::chrono::duration<double, std::nano>(clock::now() - begin).count();
}

[[nodiscard]] inline double median(std::vector<double> v) {
  std::ranges::sort(v);
  return v[v.size() / 2];
}

/// Resident bytes of this OS process, page tables included.
[[nodiscard]] inline double resident_bytes() {
  std::ifstream status("/proc/self/status");
  double kib = 0;
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:") || line.starts_with("VmPTE:")) kib += std::atof(line.c_str() + 6);
  return kib * 1024;
}

}  // namespace bench
