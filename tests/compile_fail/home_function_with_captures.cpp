// expect: orrery: a home function with state travels to all nodes
// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/array.hpp>

orrery::array_options<int> with(std::uint32_t first) {
  return {.home = [first](const int& i, std::uint32_t) { return first + static_cast<std::uint32_t>(i); }};
}
