// expect: what makes the strategy is called without arguments
// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/balance_auto.hpp>

#include <chrono>

struct Block {
  void step() {}
  template <class A>
  void serialize(A&) {}
};
ORRERY_PROCESS(Block, step);

void f(const orrery::array<Block>& grid) {
  (void)orrery::balance_every(grid, std::chrono::seconds(1), &orrery::balance_rotate);
}
