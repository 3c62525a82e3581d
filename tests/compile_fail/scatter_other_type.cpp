// expect: orrery: scatter<&T::m>\(group, values\): the parameter of the method cannot be made
// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/make_group.hpp>

#include <string>

struct Worker {
  int take(int x) { return x; }
};
ORRERY_PROCESS(Worker, take);

void f(const orrery::group<Worker>& g) { (void)orrery::scatter<&Worker::take>(g, std::vector<std::string>(2)); }
