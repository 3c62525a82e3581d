// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
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

/// The median of `runs` calls of f.
double median_of(int runs, const std::function<double()>& f);

/// Resident bytes of this OS process, page tables included.
double resident_bytes();

/// One metric: in what world it is measured, and how. `measure` runs inside a main process.
struct metric {
  std::string name;
  std::vector<std::string> world;  ///< options, such as --orrery-pes=2
  std::function<double(effort)> measure;
};

std::vector<metric> one_pe();
std::vector<metric> two_pes();
std::vector<metric> nodes();
std::vector<metric> memory();

}  // namespace bench
