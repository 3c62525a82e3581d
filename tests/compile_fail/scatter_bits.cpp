// expect: orrery: scatter<&T::m>\(group, values\): std::vector<bool> has no array of values
// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/make_group.hpp>

struct Worker {
  int take(bool x) { return x ? 1 : 0; }
};
ORRERY_PROCESS(Worker, take);

void f(const orrery::group<Worker>& g) { (void)orrery::scatter<&Worker::take>(g, std::vector<bool>(2)); }
