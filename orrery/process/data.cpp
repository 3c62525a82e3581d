// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/data.hpp>

#include <stdexcept>

#include <fmt/format.h>

namespace orrery::detail {

void throw_outside(std::size_t index, std::size_t size) {
  throw std::out_of_range(fmt::format("remote data: index {} is outside of its {} elements", index, size));
}

void throw_outside(std::size_t first, std::size_t count, std::size_t size) {
  throw std::out_of_range(
      fmt::format("remote data: {} elements from index {} on reach outside of its {} elements", count, first, size));
}

}  // namespace orrery::detail
