// expect: need elements that are trivially
// SPDX-License-Identifier: Apache-2.0
#include <orrery/shared/shared.hpp>

#include <string>

void f(orrery::team_member& t, orrery::shared_matrix<std::string> m) {
  with(halo_cache(m, t, 1), [](auto&) {});
}
