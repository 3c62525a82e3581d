// expect: a scope of .with. is opened by a behaviour
// SPDX-License-Identifier: Apache-2.0
#include <orrery/shared/shared.hpp>

void f(orrery::shared_vector<int> v) {
  orrery::with(v, [](auto&) {});
}
