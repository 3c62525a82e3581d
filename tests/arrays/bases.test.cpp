// SPDX-License-Identifier: Apache-2.0
// Arrays as arrays of a base class, and elements that are told of their migration, in each kind of world.
#include "../support/four_ways.hpp"

#include <orrery/array/array.hpp>

#include <atomic>
#include <stdexcept>

namespace orrery {
namespace bases_tests {

using testing::check;
using testing::check_contains;
using testing::thrown;

struct Shape {
  virtual ~Shape() = default;
  virtual double area() const = 0;
  void scale(double by) { factor *= by; }
  double factor = 1;
};
ORRERY_PROCESS(Shape, area, scale);

struct Named {
  std::string name() const { return "shape " + std::to_string(number); }
  void rename(int n) { number = n; }
  int number = 7;
};
ORRERY_PROCESS(Named, name, rename);

struct Square : element<Square, int>, Shape, Named {
  double area() const override { return factor * this_index() * this_index(); }
  void move_to(std::uint32_t pe) {
    ++moves;
    if (last != this_pe() && last != ~0U && (where.empty() || where.back() != this_pe())) ++late;
    last = this_pe();
    migrate_to(pe);
  }
  int told_late() const { return late; }
  void migrated() {
    where.push_back(this_pe());
    if (this_index() < 0) throw std::out_of_range("in migrated()");
    const element_ptr<Shape, int> me = this_array()[this_index()];
    post(me)->scale(1);  // it is a method like others
  }
  std::vector<std::uint32_t> seen() const { return where; }
  template <class A>
  void serialize(A& a) {
    a & factor & number & moves & where & last & late;
  }
  int moves = 0;
  std::vector<std::uint32_t> where;
  std::uint32_t last = ~0U;
  int late = 0;
};
ORRERY_PROCESS_DERIVED(Square, (Shape, Named), move_to, seen, told_late);

double area_of(const element_ptr<Shape, int>& s) { return s->area(); }

void bases() {
  const auto squares = create_array<Square>(range<int>{8});
  const array<Shape, int> shapes = squares;
  const array<Named, int> names = squares;
  for (std::uint32_t p = 0; p < world_pes(); ++p) {
    post(shapes)->scale(2);
    const element_ptr<Shape, int> three = squares[3];
    quiescence();
    const double f = static_cast<double>(2U << p);
    check(shapes[5]->area() == 25 * f && call<&area_of>(pe(p), three) == 9 * f, "methods of a base, called or posted");
    check(start(names[4])->name().get() == "shape " + std::to_string(p == 0 ? 7 : p), "a base that is not the first");
    post(names)->rename(static_cast<int>(p) + 1);
    squares[4]->move_to(p);
    squares[3]->move_to(world_pes() - 1 - p);
  }
  std::atomic<int> local = 0;
  names.for_each_local([&](Named& n) { local += n.number; });
  check(local % static_cast<int>(world_pes()) == 0, "they are the objects");
  check_contains(thrown<usage_error>("as its base", [&] { names.insert(100); }), "derived from it");
  destroy(names[2]);
  thrown<process_gone>("destroyed", [&] { (void)squares[2]->area(); });
  destroy(shapes);
  thrown<process_gone>("destroyed", [&] { (void)squares[1]->area(); });
}

void hook() {
  const auto squares = create_array<Square>(range<int>{2});
  std::vector<std::uint32_t> expected;
  std::uint32_t at = squares[1]->seen().empty() ? world_pes() : 0;  // it has not moved yet
  check(at == world_pes(), "it was told too early");
  for (int round = 0; round < 2; ++round)
    for (std::uint32_t p = 0; p < world_pes(); ++p) {
      squares[1]->move_to(p);
      quiescence(squares);
      const auto seen = squares[1]->seen();
      check(seen.empty() || seen.back() == p, "it is told where it is");
      expected.push_back(p);
    }
  const auto seen = squares[1]->seen();
  check(seen.size() >= expected.size() - 1 && seen.size() <= expected.size(), "each time once");
  check(squares[0]->seen().empty(), "the others are not told");
}

void hook_throws() {
  const auto squares = create_array<Square>();
  squares.insert_at(pe(0), -1);
  squares[-1]->move_to(world_pes() - 1);
  quiescence(squares);
  check(squares[-1]->seen() == std::vector{world_pes() - 1}, "it has moved");
}

// More moves in a row than a message follows: each one is told, and before what has waited for it.
void hook_often() {
  const auto squares = create_array<Square>(range<int>{2});
  for (std::uint32_t k = 1; k <= 12; ++k) post(squares[1])->move_to(k % world_pes());
  quiescence(squares);
  const auto seen = squares[1]->seen();
  std::size_t moves = 0;
  for (std::size_t k = 1; k < seen.size(); ++k) moves += seen[k] != seen[k - 1] ? 1U : 0U;
  check(seen.empty() || moves == seen.size() - 1, "each is a move to another PE");
  check(world_pes() == 1 || seen.size() > 4, "it has moved");
  check(squares[1]->told_late() == 0, "a method came before the news");
}

using bases_of_arrays = testing::in_each_way;
INSTANTIATE_IN_FOUR_WAYS(bases_of_arrays);
TEST_P(bases_of_arrays, have_their_methods_called) { EXPECT_EQ(wrong_in("bases"), ""); }
using migrated = testing::in_each_way;
INSTANTIATE_IN_FOUR_WAYS(migrated);
TEST_P(migrated, tells_an_element_where_it_is) { EXPECT_EQ(wrong_in("hook"), ""); }
TEST_P(migrated, tells_an_element_that_moves_often_each_time) { EXPECT_EQ(wrong_in("hook_often"), ""); }
TEST_P(migrated, may_throw_and_is_reported) {
  const std::string said = wrong_in("hook_throws");
  EXPECT_NE(said.find("migrated"), std::string::npos) << said;
}

const orrery::testing::scenarios_of_file of_this(
    {{"bases", bases}, {"hook", hook}, {"hook_throws", hook_throws}, {"hook_often", hook_often}});

}  // namespace bases_tests
}  // namespace orrery
