// expect: orrery: this class cannot be sent to another node
// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/array.hpp>

struct Block;
ORRERY_PROCESS(Block, step);
struct Block : orrery::element<Block> {
  void step() {}
};

void f(const orrery::array<Block>& grid) { orrery::post_migrate(grid[3], 1); }
