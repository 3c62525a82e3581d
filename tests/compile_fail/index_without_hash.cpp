// expect: orrery: this class cannot be the index of an array
// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/array.hpp>

struct place {
  int x = 0;
  bool operator==(const place&) const = default;
  template <class A>
  void serialize(A& a) {
    a & x;
  }
};
struct Tile {
  void draw() {}
};
ORRERY_PROCESS(Tile, draw);

void f() { (void)orrery::create_array<Tile, place>(); }
