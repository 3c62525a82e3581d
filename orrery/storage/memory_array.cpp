// SPDX-License-Identifier: Apache-2.0
#include <orrery/storage/memory_array.hpp>

#include <orrery/process/runtime.hpp>
#include <orrery/process/spawn.hpp>

#include <vector>

namespace orrery::storage {

memory_device::memory_device(std::uint64_t pages, const index3& shape, element_type type)
    : array_page_device(pages, shape, type) {}

page memory_device::fetch(std::uint64_t index) {
  const auto there = pages_.extract(index);
  return there.empty() ? page(page_bytes()) : there.mapped();
}

array make_memory_array(const page_grid& grid, element_type type) {
  const circulant_map map(grid.pages(), world_pes());
  std::vector<remote<array_page_device>> devices;
  for (std::uint32_t i = 0; i < world_pes(); ++i)
    devices.push_back(spawn<memory_device>(pe(i), map.pages_on(i), grid.page_shape, type));
  return {grid, type, map, devices};
}

}  // namespace orrery::storage
