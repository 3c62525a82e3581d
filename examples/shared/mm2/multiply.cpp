// SPDX-License-Identifier: Apache-2.0
#include "multiply.hpp"

namespace mm2 {

using orrery::owner_computes;
using orrery::read_cache;
using orrery::with;

void multiply(orrery::team_member& team, const orrery::shared_matrix<int>& a, const orrery::shared_matrix<int>& b,
              const orrery::shared_matrix<int>& c, loop how) {
  const int n = static_cast<int>(a.row_count());
  with(owner_computes(a, team), read_cache(b), owner_computes(c, team), [&](auto& my_a, auto& all_b, auto& my_c) {
    for (const auto i : my_a.rows()) {
      if (how == loop::paper) {
        for (int j = 0; j < n; ++j) my_c[i, static_cast<std::uint64_t>(j)] = dot_product(&my_a[i, 0], all_b, j, n);
      } else {
        row_product(&my_a[i, 0], all_b, &my_c[i, 0], n);
      }
    }
  });
  team.barrier();  // the next phase reads what this one has written
}

void two_phases(orrery::team_member& team, orrery::shared_matrix<int> p, orrery::shared_matrix<int> q,
                orrery::shared_matrix<int> r, loop how) {
  multiply(team, q, r, p, how);
  multiply(team, q, p, r, how);
}

}  // namespace mm2
