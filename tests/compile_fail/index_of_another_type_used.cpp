// expect: orrery: this class is an element with an index of another type
// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/array.hpp>

struct Tile : orrery::element<Tile, orrery::index<2>> {
  void draw() {}
};
ORRERY_PROCESS(Tile, draw);

void f(const orrery::array<Tile, int>& tiles) { post(tiles[1])->draw(); }
