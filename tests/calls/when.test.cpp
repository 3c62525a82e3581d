// SPDX-License-Identifier: Apache-2.0
// Messages that methods wait for by a reference number, in each kind of world.
#include "../support/four_ways.hpp"

#include <orrery/array/array.hpp>
#include <orrery/process/when.hpp>

#include <algorithm>
#include <stdexcept>

namespace orrery {
namespace when_tests {

using testing::check;
using testing::thrown;

/// Each step sends to four neighbours, some of which are a step ahead.
struct Block;
ORRERY_PROCESS(Block, recv_border, recv_total, iterate, sum, go_to, early);
struct Block : element<Block, int>, arrivals {
  static constexpr int n = 8;
  void recv_border(int step, int side, std::vector<long> row) {
    arrived<&Block::recv_border>(step, side, std::move(row));
  }
  void recv_total(int step, long x) { arrived<&Block::recv_total>(step, x); }
  void iterate(int steps) {
    for (int step = 0; step < steps; ++step) {
      for (int side = 0; side < 4; ++side)
        post(this_array()[(this_index() + 2 * side + 1) % n])->recv_border(step, side, std::vector<long>{value, 1});
      int sides = 0;
      for (const auto& [side, row] : when<&Block::recv_border>(step, 3)) value += row.at(0), sides |= 1 << side;
      const auto [side, row] = when<&Block::recv_border>(step);
      value += row.at(0);
      check((sides | 1 << side) == 15, "the borders of one step");
      post(this_array()[(this_index() + 1) % n])->recv_total(step, value);
      check(when<&Block::recv_total>(step) == value, "all go the same way");
    }
    done = true;
  }
  long sum() const { return done ? value : -1; }
  void go_to(unsigned pe) { migrate_to(pe); }
  long early(int step) {
    return arrived_count<&Block::recv_total>(step) == 2
               ? when<&Block::recv_total>(step) * 100 + when<&Block::recv_total>(step)
               : -1;
  }
  template <class A>
  void serialize(A& a) {
    a & value & done;
    arrivals::serialize(a);
  }
  long value = 1;
  bool done = false;
};

void borders() {
  const auto a = create_array<Block>(range<int>{Block::n});
  for (int i = 0; i < Block::n; ++i) post(a[i])->iterate(5);
  long expected = 1;
  for (int step = 0; step < 5; ++step) expected *= 5;
  for (int i = 0; i < Block::n; ++i)
    while (a[i]->sum() != expected) yield();
}

void migration() {
  const auto a = create_array<Block>(range<int>{1});
  for (std::uint32_t p = 0; p < world_pes(); ++p) {
    const int step = static_cast<int>(p);
    a[0]->recv_total(step, 1);
    a[0]->go_to(world_pes() - 1 - p);
    a[0]->recv_total(step, 2);
    a[0]->recv_total(step + 1000, 3);
    a[0]->go_to(p);
    check(a[0]->early(step) == 102, "what has come early goes along, in its order");
  }
}

/// A process and a member wait in the same way.
struct Desk;
ORRERY_PROCESS(Desk, letter, bell, read, wait, never);
struct Desk : arrivals {
  void letter(std::string from, std::string text) { arrived<&Desk::letter>(std::move(from), std::move(text)); }
  void bell(int n) { arrived<&Desk::bell>(n); }
  std::string read(std::string from) { return when<&Desk::letter>(from); }
  int wait(int n) {
    (void)when<&Desk::bell>(n, 2);
    return n;
  }
  void never() { (void)when<&Desk::bell>(-1); }
};

void processes() {
  for (std::uint32_t p = 0; p < world_pes(); ++p) {
    const auto d = spawn<Desk>(pe(p));
    auto ann = start(d)->read("Ann");
    auto bob = start(d)->read("Bob");
    post(d)->letter("Bob", "one");
    post(d)->letter("Cid", "two");
    check(bob.get() == "one" && !ann.ready(), "each gets its own");
    post(d)->letter("Ann", "three");
    check(ann.get() == "three" && d->read("Cid") == "two", "others wait on");
    auto twice = start(d)->wait(7);
    d->bell(7);
    d->bell(8);
    check(!twice.ready(), "one is missing");
    d->bell(7);
    check(twice.get() == 7, "both are there");
    auto gone = start(d)->never();
    d->bell(1);
    destroy(d);
    thrown<process_gone>("destroyed while it waits", [&] { gone.get(); });
  }
}

using when = testing::in_each_way;
INSTANTIATE_IN_FOUR_WAYS(when);
TEST_P(when, elements_await_the_borders_of_a_step) { EXPECT_EQ(wrong_in("borders"), ""); }
TEST_P(when, elements_migrate_with_what_has_come_early) { EXPECT_EQ(wrong_in("migration"), ""); }
TEST_P(when, processes_await_messages_by_numbers_of_any_type) { EXPECT_EQ(wrong_in("processes"), ""); }

const orrery::testing::scenarios_of_file of_this({{"borders", borders},
                                                  {"migration", migration},
                                                  {"processes", processes}});

}  // namespace when_tests
}  // namespace orrery
