// SPDX-License-Identifier: Apache-2.0
// Values that each node has, in each kind of world.
#include "../support/four_ways.hpp"

#include <orrery/process/collectives.hpp>
#include <orrery/process/spread.hpp>

#include <set>

namespace orrery {
namespace spread_tests {

using testing::check;
using testing::thrown;

struct Table {
  std::vector<int> values;
  std::string name;
};

int look(spread_handle<Table> t, int i) { return t->values.at(static_cast<std::size_t>(i)); }
std::uintptr_t place_of(spread_handle<Table> t) { return reinterpret_cast<std::uintptr_t>(&*t); }
spread_handle<Table> make(int n) { return spread(Table{std::vector<int>(3, n), "of " + std::to_string(n)}); }

void values() {
  const auto t = spread(Table{{1, 2, 3}, "numbers"});
  const auto other = spread(std::string("a text"));
  for (int round = 0; round < 2; ++round)
    for (std::uint32_t p = 0; p < world_pes(); ++p) {
      check(call<&look>(pe(p), t, 2) == 3, "each node reads it");
      const auto theirs = call<&make>(pe(p), static_cast<int>(p));
      check(theirs->name == "of " + std::to_string(p), "anybody makes one");
      check(call<&look>(pe(world_pes() - 1 - p), theirs, 0) == static_cast<int>(p), "and all read it");
    }
  check(t->name == "numbers" && *other == "a text" && t == spread_handle(t) && t && !spread_handle<int>(), "a value");
  const auto copy = t;
  check(&*copy == &*t, "copies share it");
  thrown<usage_error>("no value", [] { (void)*spread_handle<int>(); });
}

void sharing() {  // one object for each node
  const auto t = spread(Table{{7}, "shared"});
  std::set<std::pair<std::uint32_t, std::uintptr_t>> places;
  const std::uint32_t pes_of_node = world_pes() / world_nodes();
  for (std::uint32_t p = 0; p < world_pes(); ++p) places.emplace(p / pes_of_node, call<&place_of>(pe(p), t));
  check(places.size() == world_nodes(), "each node has one object");
}

/// For a program that joins the world later.
struct Desk {
  explicit Desk(spread_handle<Table> t) : table(std::move(t)) {}
  spread_handle<Table> lend() const { return table; }
  void came() { ++guests; }
  int count() const { return guests; }
  spread_handle<Table> table;
  int guests = 0;
};
ORRERY_PROCESS(Desk, lend, came, count);

void lender() {
  const auto desk = spawn<Desk>(here(), spread(Table{{4, 5, 6}, "lent"}));
  publish("/desk", desk);
  fmt::print(stderr, "up\n");
  while (desk->count() == 0) yield();
}
void borrower() {
  const auto desk = lookup<Desk>("/desk");
  const auto table = desk->lend();
  check(table->name == "lent", "a node that joins later gets the value");
  for (const std::uint32_t p : program_pes()) check(call<&look>(pe(p), table, 1) == 5, "all of its PEs do");
  desk->came();
}

// --- all to all ----------------------------------------------------------------------------------

struct Worker : member<Worker> {
  std::vector<int> exchange(int rounds) {
    std::vector<int> got;
    for (int round = 0; round < rounds; ++round) {
      std::vector<int> mine;
      for (std::size_t to = 0; to < size(); ++to) mine.push_back(value(rank(), to, round));
      got = all_to_all(*this, std::move(mine));
      testing::check(got.size() == size(), "one from each");
      for (std::size_t from = 0; from < got.size(); ++from)
        testing::check(got[from] == value(from, rank(), round), "the right one from each");
      if (round % 3 == 1) (void)all_reduce(1);
      if (round % 3 == 2) barrier();
    }
    return got;
  }
  void wrong() { (void)all_to_all(*this, std::vector<int>(rank() == 1 ? 1 : size())); }
  void others() {
    if (rank() == 1) {
      barrier();
    } else {
      (void)all_to_all(*this, std::vector<int>(size()));
    }
  }
  static int value(std::size_t from, std::size_t to, int round) {
    return static_cast<int>(from * 10'000 + to * 100) + round;
  }
};
ORRERY_PROCESS(Worker, exchange, wrong, others);

void exchanges() {
  for (const std::size_t n : {std::size_t{1}, std::size_t{2}, std::size_t{7}}) {
    const auto g = spawn_group<Worker>(everywhere(), n);
    (void)g->exchange(7);
    if (n > 1) thrown<usage_error>("another number of values", [&] { g->wrong(); });
    (void)g->exchange(2);
    if (n > 1) thrown<usage_error>("another collective", [&] { g->others(); });
  }
}

using spreading = testing::in_each_way;
INSTANTIATE_IN_FOUR_WAYS(spreading);
TEST_P(spreading, gives_a_value_to_all) { EXPECT_EQ(wrong_in("values"), ""); }
TEST_P(spreading, exchanges_values_of_all_members) { EXPECT_EQ(wrong_in("exchanges"), ""); }
TEST(spreading_on_nodes, has_one_object_on_each) {
  for (const char* pes : {"--orrery-pes=1", "--orrery-pes=2"})
    EXPECT_EQ(testing::outcome_of({"--scenario=sharing_of_spread", "--orrery-nodes=2", pes}), "good");
  EXPECT_EQ(testing::outcome_of({"--scenario=sharing_of_spread", "--orrery-pes=3"}), "good");
}

TEST(spreading_on_nodes, gives_the_value_to_nodes_that_join_later) {
  for (const char* nodes : {"--orrery-nodes=1", "--orrery-nodes=3"})
    for (const char* pes : {"--orrery-pes=1", "--orrery-pes=2"}) {
      testing::program first({"--scenario=lender", testing::own_world(), nodes, pes});
      first.hear("up");
      EXPECT_EQ(testing::outcome_of({"--scenario=borrower", testing::own_world(), nodes, pes}), "good");
      EXPECT_EQ(first.end(), "good");
    }
}

const orrery::testing::scenarios_of_file of_this({{"values", values},
                                                  {"sharing_of_spread", sharing},
                                                  {"exchanges", exchanges},
                                                  {"lender", lender},
                                                  {"borrower", borrower}});

}  // namespace spread_tests
}  // namespace orrery
