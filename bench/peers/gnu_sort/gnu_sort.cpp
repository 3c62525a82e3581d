// SPDX-License-Identifier: Apache-2.0
// GNU libstdc++'s parallel mode: a multiway merge sort by OpenMP.
#include "../sort.hpp"

#include <parallel/algorithm>

using namespace peers;

int main() {
  measure_sort("gnu_sort_100m_s", [](std::vector<int>& numbers) {
    __gnu_parallel::sort(numbers.begin(), numbers.end());
    return std::vector<std::pair<int*, long>>{{numbers.data(), long(numbers.size())}};
  });
}
