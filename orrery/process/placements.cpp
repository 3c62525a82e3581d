// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/placements.hpp>

#include <orrery/process/runtime.hpp>
#include <orrery/wire/error.hpp>

namespace orrery {

placements everywhere() {
  placements p;
  p.all_ = true;
  return p;
}

placements in_blocks(placements places) {
  places.blocks_ = true;
  return places;
}

std::vector<std::uint32_t> placements::resolve(std::size_t n) const {
  std::vector<placement> list = list_;
  if (all_)
    for (const std::uint32_t i : reachable_pes()) list.push_back(orrery::pe(i));
  if (list.empty()) throw usage_error(errc::bad_argument, "spawn_group: an empty list of placements");
  std::vector<std::uint32_t> pes;
  pes.reserve(n);
  for (std::size_t rank = 0; rank < n; ++rank)
    pes.push_back(list[blocks_ ? rank * list.size() / n : rank % list.size()].resolve());
  return pes;
}

}  // namespace orrery
