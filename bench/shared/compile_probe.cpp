// SPDX-License-Identifier: Apache-2.0
// What `shared_compile_s` compiles: a user's file that uses `with` on three matrices.
#include "../../examples/shared/mm2/kernel.hpp"

#include <orrery/shared/shared.hpp>

void run_compile_probe(orrery::team_member& team, orrery::shared_matrix<int> a, orrery::shared_matrix<int> b,
                       orrery::shared_matrix<int> c, int n) {
  with(owner_computes(a, team), read_cache(b), release(c), [&](auto& A, auto& B, auto& C) {
    for (auto i : A.rows())
      for (int j = 0; j < n; ++j) C[i, j] = mm2::dot_product(&A[i, 0], B, j, n);
  });
}
