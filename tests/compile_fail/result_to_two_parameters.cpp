// expect: orrery: result_to: the method is given the result
// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/array.hpp>

struct Listener {
  void hear(int, int) {}
};
ORRERY_PROCESS(Listener, hear);

void f(orrery::remote<Listener> l) { (void)orrery::result_to<&Listener::hear>(l); }
