// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../measure.hpp"

#include <functional>
#include <string>
#include <vector>

namespace bench {

/// The median of `runs` calls of f.
double median_of(int runs, const std::function<double()>& f);

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
std::vector<metric> waits();

}  // namespace bench
