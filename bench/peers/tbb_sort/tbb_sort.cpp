// SPDX-License-Identifier: Apache-2.0
// Threading Building Blocks' parallel quicksort.
#include "../sort.hpp"

#include <tbb/parallel_sort.h>

using namespace peers;

int main() {
  measure_sort("tbb_sort_100m_s", [](std::vector<int>& numbers) {
    tbb::parallel_sort(numbers.begin(), numbers.end());
    return std::vector<std::pair<int*, long>>{{numbers.data(), long(numbers.size())}};
  });
}
