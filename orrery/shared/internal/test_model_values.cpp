// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/runtime.hpp>
#include <orrery/shared/internal/test_model_values.hpp>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace orrery::testing {

distribution random_distribution(random& r, std::uint64_t n, bool matrix) {
  std::vector<std::uint32_t> pes(world_pes());
  std::iota(pes.begin(), pes.end(), 0U);
  std::shuffle(pes.begin(), pes.end(), r);
  pes.resize(1 + below(r, pes.size()));
  switch (below(r, matrix ? 7 : 5)) {
    case 0:
      return distribution::block().over(pes);
    case 1:
      return distribution::cyclic().over(pes);
    case 2:
      return distribution::block_cyclic(1 + below(r, 5)).over(pes);
    case 3: {
      std::vector<std::uint64_t> ends(pes.size());
      for (auto& e : ends) e = below(r, n + 1);
      std::ranges::sort(ends);
      ends.back() = n;
      return distribution::bounds(std::move(ends)).over(pes);
    }
    case 4:
      return distribution::on(pe(pes[0]));
    case 5:
      return distribution::columns().over(pes);
    default:
      if (pes.size() % 2 != 0) return distribution::tiles(static_cast<std::uint32_t>(pes.size()), 1).over(pes);
      return distribution::tiles(2, static_cast<std::uint32_t>(pes.size() / 2)).over(pes);
  }
}

}  // namespace orrery::testing
