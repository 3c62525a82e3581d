// expect: give the class a public default constructor
// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/balance.hpp>

struct Block;
ORRERY_PROCESS(Block, step);
struct Block {
  explicit Block(int n) : size(n) {}
  void step() {}
  template <class A>
  void serialize(A& a) {
    a & size;
  }
  int size;
};

void f(const orrery::array<Block>& grid) { (void)orrery::balance(grid, *orrery::balance_greedy()); }
