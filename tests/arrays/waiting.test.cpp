// SPDX-License-Identifier: Apache-2.0
// Elements whose methods wait, or that hold promises, as they are moved, balanced and destroyed, in each kind of world.
#include "../support/four_ways.hpp"

#include <orrery/array/array.hpp>
#include <orrery/array/balance.hpp>
#include <orrery/process/on_end.hpp>

#include <atomic>

namespace orrery {
namespace waiting_tests {

using testing::check;
using testing::check_contains;
using testing::thrown;

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

using elements_that_wait = testing::in_each_way;
INSTANTIATE_IN_FOUR_WAYS(elements_that_wait);
TEST_P(elements_that_wait, are_destroyed_with_their_waits) { EXPECT_EQ(wrong_in("destroyed_while_waiting"), ""); }
TEST_P(elements_that_wait, stay_where_they_are_when_others_are_balanced) {
  EXPECT_EQ(wrong_in("balanced_while_waiting"), "");
}
TEST_P(elements_that_wait, move_when_they_hold_no_promise) { EXPECT_EQ(wrong_in("promises"), ""); }
TEST_P(elements_that_wait, tell_their_watchers_that_they_move) { EXPECT_EQ(wrong_in("moved"), ""); }

const orrery::testing::scenarios_of_file of_this({{"moved", moved},
                                                  {"destroyed_while_waiting", destroyed_while_waiting},
                                                  {"balanced_while_waiting", balanced_while_waiting},
                                                  {"promises", promises}});

}  // namespace waiting_tests
}  // namespace orrery
