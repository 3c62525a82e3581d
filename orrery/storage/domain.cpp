// SPDX-License-Identifier: Apache-2.0
#include <orrery/storage/domain.hpp>

#include <stdexcept>

#include <fmt/format.h>

namespace orrery::storage {

std::string to_string(const index3& s) { return fmt::format("{} x {} x {}", s[0], s[1], s[2]); }

std::string to_string(const domain& d) {
  return fmt::format("[{}, {}) x [{}, {}) x [{}, {})", d.first[0], d.last[0], d.first[1], d.last[1], d.first[2],
                     d.last[2]);
}

page_grid page_grid::checked(const index3& array_shape, const index3& page_shape) {
  constexpr std::int64_t most = std::int64_t{1} << 59;
  const auto check = [](const index3& shape, std::string_view whose) {
    std::int64_t left = most;
    for (const std::int64_t n : shape) {
      if (n <= 0)
        throw std::invalid_argument(
            fmt::format("the {} shape {} has a side that is not positive", whose, to_string(shape)));
      left /= n;
    }
    if (left == 0)
      throw std::invalid_argument(fmt::format("the {} shape {} has more than 2^59 elements", whose, to_string(shape)));
  };
  check(array_shape, "array's");
  check(page_shape, "pages'");
  const page_grid grid{array_shape, page_shape};
  index3 covered = grid.pages();
  for (int k = 0; k < 3; ++k) {
    if (page_shape[k] > most / covered[k]) covered[k] = most;
    covered[k] *= page_shape[k];
  }
  check(covered, "covered");
  return grid;
}

}  // namespace orrery::storage
