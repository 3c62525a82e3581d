// SPDX-License-Identifier: Apache-2.0
// An array of squares is an array of shapes, too; an element is told that it has migrated.
// run: ./shapes
// run: ./shapes --orrery-nodes=2 --orrery-pes=2
#include <orrery/array/array.hpp>

#include <cstdio>

struct Shape {
  void scale(double by) { side *= by; }
  double side = 1;
};
ORRERY_PROCESS(Shape, scale);
struct Square : orrery::element<Square>, Shape {
  double area() const { return side * side; }
  void go(std::uint32_t pe) { migrate_to(pe); }
  void migrated() { std::printf("square %d is on PE %u now\n", this_index(), orrery::this_pe()); }
  template <class A>
  void serialize(A& a) {
    a & side;
  }
};
ORRERY_PROCESS(Square, area, go);

int main(int argc, char** argv) {
  return orrery::run(argc, argv, [](orrery::args) {
    const auto squares = orrery::create_array<Square>(orrery::range<int>{4});
    const orrery::array<Shape> shapes = squares;
    post(shapes)->scale(3);
    post(squares[2])->go(orrery::world_pes() - 1);
    return squares[2]->area() == 9 ? 0 : 1;
  });
}
