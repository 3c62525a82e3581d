// SPDX-License-Identifier: Apache-2.0
#include "diffuse.hpp"

#include <chrono>
#include <cmath>
#include <cstdint>
#include <utility>

namespace diffusion {

using orrery::edges;
using orrery::halo_cache;
using orrery::owner_computes;
using orrery::shared_matrix;

void diffuse(orrery::team_member& team, shared_matrix<double> now, shared_matrix<double> next, int steps,
             double cell_ns) {
  for (int step = 0; step < steps; ++step) {
    with(halo_cache(now, team, 1, edges::periodic), owner_computes(next, team), [cell_ns](auto& a, auto& b) {
      for (const auto i : a.rows())
        for (const auto j : a.columns())
          b[i, j] = next_value(a[i, j], a[i - 1, j], a[i + 1, j], a[i, j - 1], a[i, j + 1]);
      const auto cells = static_cast<double>(a.rows().size() * a.columns().size());
      orrery::compute(std::chrono::nanoseconds(std::llround(cell_ns * cells)));
    });
    team.barrier();
    std::swap(now, next);
  }
}

void diffuse_plainly(orrery::team_member& team, shared_matrix<double> now, shared_matrix<double> next, int steps) {
  for (int step = 0; step < steps; ++step) {
    step_plainly(now, next, now.row_count(), next.local_rows(), next.local_columns());
    team.barrier();
    std::swap(now, next);
  }
}

}  // namespace diffusion
