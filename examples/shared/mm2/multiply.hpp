// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel.hpp"

#include <orrery/orrery.hpp>
#include <orrery/shared/shared.hpp>

#include <cstdint>

namespace mm2 {

/// Which loop multiplies.
enum class loop : int {
  /// A dot product for each element (Lu 2001, figure 2): the inner loop goes down a column.
  paper,
  by_rows,   ///< the same sums, but the inner loop goes along a row
};

struct settings {
  loop how = loop::paper;
  bool together = false;  ///< the members fill their caches by one allgather
  bool barriers = false;  ///< around the opening of scopes, to measure that (figure 6)
  bool plain = false;  ///< no scopes: each access by default
  double step_ns = 0;  ///< virtual time of a multiplication and addition, in simulations
};

/// The paper's loop by elements, for some rows of C: of scopes, or of the matrices themselves.
template <class Rows, class A, class B, class C>
void multiply_elements(const Rows& rows, std::uint64_t n, A& a, B& b, C& c) {
  for (const auto i : rows)
    for (std::uint64_t j = 0; j < n; ++j) {
      int sum = 0;
      for (std::uint64_t k = 0; k < n; ++k) {
        const int left = a[i, k];
        sum += left * b[k, j];
      }
      c[i, j] = sum;
    }
}

/// C <- A B, by a team: each member computes the rows that are its own. The seconds that it took to
/// open the scopes, if they are measured.
double multiply(orrery::team_member& team, const orrery::shared_matrix<int>& a, const orrery::shared_matrix<int>& b,
                const orrery::shared_matrix<int>& c, const settings& s);

/// P <- Q R, then R <- Q P.
double two_phases(orrery::team_member& team, orrery::shared_matrix<int> p, orrery::shared_matrix<int> q,
                  orrery::shared_matrix<int> r, settings s);

}  // namespace mm2
