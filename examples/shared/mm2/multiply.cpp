// SPDX-License-Identifier: Apache-2.0
#include "multiply.hpp"

#include <chrono>
#include <cmath>

namespace mm2 {

using orrery::owner_computes;
using orrery::read_cache;
using orrery::with;

double multiply(orrery::team_member& team, const orrery::shared_matrix<int>& a, const orrery::shared_matrix<int>& b,
                const orrery::shared_matrix<int>& c, const settings& s) {
  if (s.plain) {
    multiply_elements(c.local_rows(), a.row_count(), a, b, c);
    team.barrier();
    return 0;
  }
  const int n = static_cast<int>(a.row_count());
  if (s.barriers) team.barrier();
  const auto begin = orrery::now();
  double opening = 0;
  const auto cache = s.together ? read_cache(b, team) : read_cache(b);
  with(owner_computes(a, team), cache, owner_computes(c, team), [&](auto& my_a, auto& all_b, auto& my_c) {
    if (s.barriers) {
      team.barrier();
      opening = std::chrono::duration<double>(orrery::now() - begin).count();
    }
    for (const auto i : my_a.rows()) {
      if (s.how == loop::paper) {
        for (int j = 0; j < n; ++j) my_c[i, static_cast<std::uint64_t>(j)] = dot_product(&my_a[i, 0], all_b, j, n);
      } else {
        row_product(&my_a[i, 0], all_b, &my_c[i, 0], n);
      }
    }
    const double steps = static_cast<double>(my_a.rows().size()) * n * n;
    orrery::compute(std::chrono::nanoseconds(std::llround(s.step_ns * steps)));
  });
  team.barrier();  // the next phase reads what this one has written
  return opening;
}

double two_phases(orrery::team_member& team, orrery::shared_matrix<int> p, orrery::shared_matrix<int> q,
                  orrery::shared_matrix<int> r, settings s) {
  const double opening = multiply(team, q, r, p, s);
  return opening + multiply(team, q, p, r, s);
}

}  // namespace mm2
