// expect: orrery: the index of this array is an integer: round the number first
// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/array.hpp>

struct Cell : orrery::element<Cell, int> {
  void set(int) {}
};
ORRERY_PROCESS(Cell, set);

void f(const orrery::array<Cell>& cells, double x) { post(cells[x])->set(1); }
