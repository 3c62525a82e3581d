// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/group.hpp>
#include <orrery/process/runtime.hpp>

#include <cstdint>
#include <random>
#include <vector>

namespace orrery::testing {

inline placements random_places(std::mt19937& random) {
  switch (random() % 4) {
    case 0:
      return everywhere();
    case 1:
      return in_blocks();
    case 2:
      return pe(static_cast<std::uint32_t>(random() % world_pes()));
    default: {
      std::vector<placement> list(1 + random() % 7);
      for (auto& p : list) p = pe(static_cast<std::uint32_t>(random() % world_pes()));
      return list;
    }
  }
}

}  // namespace orrery::testing
