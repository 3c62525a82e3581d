// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel.hpp"

#include <orrery/orrery.hpp>
#include <orrery/shared/shared.hpp>

namespace mm2 {

/// Which loop multiplies.
enum class loop : int {
  paper,     ///< a dot product for each element (Lu 2001, figure 2): the inner loop goes down a column
  by_rows,   ///< the same sums, but the inner loop goes along a row
};

/// C <- A B, by a team: each member computes the rows that are its own.
void multiply(orrery::team_member& team, const orrery::shared_matrix<int>& a, const orrery::shared_matrix<int>& b,
              const orrery::shared_matrix<int>& c, loop how);

/// P <- Q R, then R <- Q P.
void two_phases(orrery::team_member& team, orrery::shared_matrix<int> p, orrery::shared_matrix<int> q,
                orrery::shared_matrix<int> r, loop how);

}  // namespace mm2
