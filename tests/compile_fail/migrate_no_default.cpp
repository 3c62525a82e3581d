// expect: orrery: elements of this class migrate, also to other nodes
// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/array.hpp>

struct Block;
ORRERY_PROCESS(Block, step);
struct Block : orrery::element<Block> {
  explicit Block(int n) : size(n) {}
  void step() { migrate_to(0); }
  template <class A>
  void serialize(A& a) {
    a & size;
  }
  int size;
};

void f() { (void)orrery::create_array<Block>(orrery::range<int>{4}, {}, 1); }
