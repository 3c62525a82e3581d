// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

struct counter {
  int add(int n) { return total += n; }
  int total = 0;
};
ORRERY_PROCESS(counter, add);

int main(int argc, char** argv) {
  return orrery::run(argc, argv, [](orrery::args) {
    auto c = orrery::spawn<counter>(orrery::pe(0));
    c->add(40);
    return c->add(2) == 42 ? 0 : 1;
  });
}
