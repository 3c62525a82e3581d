// expect: orrery: the coordinates of this array are integers: round the numbers first
// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/array.hpp>

struct Tile : orrery::element<Tile, orrery::index<2>> {
  void draw() {}
};
ORRERY_PROCESS(Tile, draw);

void f(const orrery::array<Tile>& tiles, float x) { post(tiles[x, 1])->draw(); }
