// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/orrery.hpp>
#include <orrery/shared/shared.hpp>

#include <cstdint>

namespace diffusion {

inline double next_value(double here, double above, double below, double left, double right) {
  return here + 0.2 * (above + below + left + right - 4 * here);
}

/// One step by default access, of the elements of `next` in these rows and columns.
template <class Matrix, class Rows, class Columns>
void step_plainly(const Matrix& now, const Matrix& next, std::uint64_t n, const Rows& rows, const Columns& columns) {
  for (const auto i : rows)
    for (const auto j : columns)
      next[i, j] = next_value(now[i, j], now[(i + n - 1) % n, j], now[(i + 1) % n, j], now[i, (j + n - 1) % n],
                              now[i, (j + 1) % n]);
}

/// One member of a team: `steps` times, next <- now by a five-point stencil on a torus, and the two
/// change places. A cell takes `cell_ns` of virtual time in a simulated world.
void diffuse(orrery::team_member& team, orrery::shared_matrix<double> now, orrery::shared_matrix<double> next,
             int steps, double cell_ns);
/// The same without scopes: the adviser (--orrery-advise) says what to put around the loop.
void diffuse_plainly(orrery::team_member& team, orrery::shared_matrix<double> now, orrery::shared_matrix<double> next,
                     int steps);

}  // namespace diffusion
