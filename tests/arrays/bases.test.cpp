// SPDX-License-Identifier: Apache-2.0
// Arrays as arrays of a base class, elements that are told of their migration, sections that members make, in each kind of world.
#include "../support/four_ways.hpp"

#include <orrery/array/array.hpp>
#include <orrery/array/balance.hpp>
#include <orrery/array/section.hpp>
#include <orrery/process/on_end.hpp>

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

/// Its methods wait for each other.
struct Waiting;
ORRERY_PROCESS(Waiting, wait, open, where, link_to);
struct Waiting : element<Waiting, int> {
  static inline std::atomic<int> alive = 0;  // on this node
  Waiting() { ++alive; }
  ~Waiting() { --alive; }
  void wait() {
    wait_until([this] { return opened; });
  }
  void open() { opened = true; }
  std::uint32_t where() const { return this_pe(); }
  remote<Waiting> link_to() { return this_process<Waiting>(); }
  template <class A>
  void serialize(A& a) {
    a & opened;
  }
  bool opened = false;
};

void destroyed_while_waiting() {
  const auto a = create_array<Waiting>(range<int>{8});
  std::vector<future<void>> waits;
  for (int i = 0; i < 8; ++i)
    for (int k = 0; k < 3; ++k) waits.push_back(start(a[i])->wait());
  for (int i = 0; i < 8; ++i) (void)a[i]->where();  // they wait now
  destroy(a[5]);
  for (std::size_t k = 15; k < 18; ++k) thrown<process_gone>("its element was destroyed", [&] { waits[k].get(); });
  a.insert(5);
  check(a[5]->where() < world_pes(), "the index is free");
  a[6]->open();
  for (std::size_t k = 18; k < 21; ++k) waits[k].get();
  destroy(a);
  for (std::size_t k = 0; k < waits.size(); ++k)
    if (k < 15 || k >= 21) thrown<process_gone>("the array was destroyed", [&] { waits[k].get(); });
  thrown<process_gone>("a call", [&] { (void)a[0]->where(); });
}

void balanced_while_waiting() {
  const auto a =
      create_array<Waiting>(range<int>{8}, {}, placement_map<int>([](const int&, std::uint32_t) { return 0U; }));
  auto waits = start(a[3])->wait();
  for (int i = 0; i < 8; ++i) (void)a[i]->where();
  const auto r = balance(a, *balance_rotate());
  check(r.moved == (world_pes() > 1 ? 7U : 0U) && a[3]->where() == 0, "what waits stays where it is");
  a[3]->open();
  waits.get();
}

struct Partner {
  int touch() const { return 1; }
};
ORRERY_PROCESS(Partner, touch);
void moved() {
  if (world_pes() == 1) return;
  const auto a = create_array<Waiting>();
  a.insert_at(pe(0), 1);
  const auto me = a[1]->link_to();
  const auto partner = spawn<Partner>(pe(world_pes() - 1));
  link(me, partner);
  auto end = end_of(me);
  start_migrate(a[1], world_pes() - 1).get();
  const ending e = end.get();
  check(e.cause == end_cause::moved && !e.failed(), "it has moved");
  quiescence();
  check(partner->touch() == 1, "its partner lives");
  check(a[1]->where() == world_pes() - 1, "and so does it");
}

struct Pixel;
ORRERY_PROCESS(Pixel, begin, join, light, add_up, sections);
struct Pixel : element<Pixel, int> {
  using row = section<Pixel, int>;
  void begin(const std::vector<int>& members, const result_target& t) {  // a member makes its own section
    (void)start_create_section(this_array(), members).then([a = this_array(), t](const row& r) {
      post(r)->add_up(r, t);
    });
  }
  void join() {
    (void)start_create_section(this_array(), range<int>{4}).then([](const row& r) { post(r)->light(1); });
  }
  void light(int n) { value += n; }
  void add_up(row of, const result_target& t) { contribute(of, value, orrery::sum, t); }
  int sections() const { return value; }
  int value = 10;
};

void own_sections() {
  const auto image = create_array<Pixel>(range<int>{8});
  for (int i = 0; i < 8; ++i) {
    auto [target, sum] = expect_result<int>();
    post(image[i])->begin({i, (i + 1) % 8, (i + 5) % 8}, target);
    check(sum.get() == 30, "a member of its own section");
  }
  post(image)->join();
  quiescence();
  check(image[3]->sections() == 18 && image[4]->sections() == 10, "all made one");
  check_contains(
      thrown<usage_error>("no such member", [&] { (void)start_create_section(image, std::vector{100}).get(); }), "100");
}

/// Answers later, and would move meanwhile.
struct Teller;
ORRERY_PROCESS(Teller, ask, answer, go, where);
struct Teller : element<Teller, int> {
  future<int> ask() {
    auto f = waiting.emplace_back().get_future();
    return f;
  }
  void answer(int n) {
    for (auto& p : waiting) p.set_value(n);
    waiting.clear();
  }
  void go(std::uint32_t pe) { migrate_to(pe); }
  std::uint32_t where() const { return this_pe(); }
  template <class A>
  void serialize(A&) {}
  std::vector<promise<int>> waiting;
};

void promises() {
  const auto a = create_array<Teller>();
  a.insert_at(pe(0), 3);
  const std::uint32_t last = world_pes() - 1;
  auto answer = start(a[3])->ask();
  const std::string why = thrown<usage_error>("it holds a promise", [&] { start_migrate(a[3], last).get(); });
  check_contains(why, "array[3] cannot move: a promise that");
  check_contains(why, "ask");
  check(a[3]->where() == 0, "it stays");
  a[3]->answer(5);
  check(answer.get() == 5, "who waits gets the answer");
  start_migrate(a[3], last).get();
  quiescence(a);
  check(a[3]->where() == last, "then it moves");
}

using bases_of_arrays = testing::in_each_way;
INSTANTIATE_IN_FOUR_WAYS(bases_of_arrays);
TEST_P(bases_of_arrays, have_their_methods_called) { EXPECT_EQ(wrong_in("bases"), ""); }
using migrated = testing::in_each_way;
INSTANTIATE_IN_FOUR_WAYS(migrated);
TEST_P(migrated, tells_an_element_where_it_is) { EXPECT_EQ(wrong_in("hook"), ""); }
TEST_P(migrated, tells_an_element_that_moves_often_each_time) { EXPECT_EQ(wrong_in("hook_often"), ""); }
TEST_P(migrated, is_what_watchers_of_an_element_hear) { EXPECT_EQ(wrong_in("moved"), ""); }
using elements_that_wait = testing::in_each_way;
INSTANTIATE_IN_FOUR_WAYS(elements_that_wait);
TEST_P(elements_that_wait, are_destroyed_with_their_waits) { EXPECT_EQ(wrong_in("destroyed_while_waiting"), ""); }
TEST_P(elements_that_wait, stay_where_they_are_when_others_are_balanced) {
  EXPECT_EQ(wrong_in("balanced_while_waiting"), "");
}
TEST_P(migrated, is_not_called_while_a_promise_is_held) { EXPECT_EQ(wrong_in("promises"), ""); }
TEST_P(migrated, may_throw_and_is_reported) {
  const std::string said = wrong_in("hook_throws");
  EXPECT_NE(said.find("migrated"), std::string::npos) << said;
}
using sections = testing::in_each_way;
INSTANTIATE_IN_FOUR_WAYS(sections);
TEST_P(sections, are_made_by_their_members) { EXPECT_EQ(wrong_in("own_sections"), ""); }

const orrery::testing::scenarios_of_file of_this({{"bases", bases},
                                                  {"hook", hook},
                                                  {"hook_throws", hook_throws},
                                                  {"hook_often", hook_often},
                                                  {"moved", moved},
                                                  {"destroyed_while_waiting", destroyed_while_waiting},
                                                  {"balanced_while_waiting", balanced_while_waiting},
                                                  {"own_sections", own_sections},
                                                  {"promises", promises}});

}  // namespace bases_tests
}  // namespace orrery
