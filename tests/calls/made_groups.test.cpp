// SPDX-License-Identifier: Apache-2.0
// Groups of what is there, and what their members exchange, in each kind of world.
#include "../support/four_ways.hpp"

#include <orrery/process/collectives.hpp>
#include <orrery/process/make_group.hpp>

#include <algorithm>
#include <functional>
#include <numeric>
#include <stdexcept>

namespace orrery {
namespace made_groups_tests {

using testing::check;
using testing::thrown;

struct Cell {
  explicit Cell(int x) : value(x) {}
  int get() const { return value; }
  int add(int x) {
    if (x < 0) throw std::out_of_range(std::to_string(x));
    return value += x;
  }
  void set(const std::vector<int>& v) { value = std::accumulate(v.begin(), v.end(), 0); }
  future<int> later() { return waiting.emplace_back().get_future(); }
  void now() {
    for (auto& p : std::exchange(waiting, {})) p.set_value(value);
  }
  int value;
  std::vector<promise<int>> waiting;
};
ORRERY_PROCESS(Cell, get, add, set, later, now);

std::vector<remote<Cell>> some_cells(int n) {
  std::vector<remote<Cell>> cells;
  for (int i = 0; i < n; ++i) cells.push_back(spawn<Cell>(pe(static_cast<std::uint32_t>(i * i) % world_pes()), i));
  return cells;
}

struct Asker {
  int sum_of(group<Cell> g) const { return g.reduce<&Cell::get>(std::plus{}); }
};
ORRERY_PROCESS(Asker, sum_of);

void made() {
  const auto cells = some_cells(7);
  const auto g = make_group(cells);
  check(g.size() == 7 && g[3] == cells[3], "its members");
  check(g->get() == std::vector{0, 1, 2, 3, 4, 5, 6}, "results in the order of the ranks");
  check(g->add(10).back() == 16 && g.reduce<&Cell::get>(std::plus{}) == 91, "a call and a reduction");
  check(spawn<Asker>(pe(world_pes() - 1))->sum_of(g) == 91, "it is sent");
  const auto pair = make_group({cells[6], cells[0]});
  check(pair->get() == std::vector{16, 10}, "two of them, in another order");
  auto later = start(pair)->later();
  pair->now();
  check(later.get() == std::vector{16, 10}, "answers that come later");
  const auto odd = subgroup(g, [](std::size_t r) { return r % 2 == 1; });
  check(odd->get() == std::vector{11, 13, 15}, "a subgroup");
  dismiss(pair);
  thrown<process_gone>("a group that was dismissed", [&] { pair->get(); });
  thrown<process_gone>("dismissed twice", [&] { dismiss(pair); });
  check(cells[0]->get() == 10, "its members live on");
  destroy(cells[1]);
  thrown<process_gone>("a member that is gone", [&] { odd->get(); });
  destroy(g);
  thrown<process_gone>("a member of a group that was destroyed", [&] { (void)cells[2]->get(); });
  thrown<usage_error>("a null pointer", [] { (void)make_group({remote<Cell>()}); });
  check(make_group(std::vector<remote<Cell>>())->get().empty(), "nobody");
}

void scattered() {
  const auto g = make_group(some_cells(6));
  check(scatter<&Cell::add>(g, std::vector{10, 20, 30, 40, 50, 60}) == std::vector{10, 21, 32, 43, 54, 65},
        "one value for each");
  scatter<&Cell::set>(g, std::vector<std::vector<int>>{{1}, {2, 3}, {}, {4}, {5, 6, 7}, {8}});
  check(g->get() == std::vector{1, 5, 0, 4, 18, 8}, "vectors");
  check(thrown<std::out_of_range>("scatter", [&] { scatter<&Cell::add>(g, std::vector{1, -2, 3, -4, 5, 6}); }) == "-2",
        "the exception of the lowest rank");
  thrown<usage_error>("too few", [&] { scatter<&Cell::add>(g, std::vector{1, 2}); });
  thrown<usage_error>("too many", [&] { scatter<&Cell::add>(g, std::vector(7, 1)); });
}

std::uint64_t processes_here() { return scheduler::current_pe->count().processes; }

// The first member's node is lost.
void member_lost() {
  const auto lost = spawn<Cell>(pe(world_pes() - 1), 0);
  const auto near = spawn<Cell>(here(), 1);
  const auto far = spawn<Cell>(node(1), 2);
  const auto processes = [&] {
    return std::pair(call<&processes_here>(here()), call<&processes_here>(pe(far.address().pe)));
  };
  const auto before = processes();
  const auto g = make_group({lost, near, far});
  post_call<&testing::kill_own_node>(pe(world_pes() - 1));
  testing::await_loss_of(world_nodes() - 1);
  thrown<node_lost>("scatter", [&] { scatter<&Cell::add>(g, std::vector{10, 20, 30}); });
  check(near->get() == 21 && far->get() == 32, "the others are called, and waited for");
  thrown<node_lost>("dismiss", [&] { dismiss(g); });
  check(processes() == before, "it has ended on the other nodes");
  thrown<node_lost>("make_group", [&] { (void)make_group({near, lost, far}); });
  while (processes() != before) yield();  // what was made is given back
}

struct Member : member<Member> {
  std::vector<int> gather() { return all_gather(*this, static_cast<int>(10 * rank())); }
  std::string hear(std::size_t from) { return broadcast_from(*this, from, "from " + std::to_string(rank())); }
  int sum() { return scan(*this, static_cast<int>(rank())); }
  std::string text() {
    return scan(*this, std::to_string(rank()), [](std::string a, std::string b) { return b + a; });
  }
  int before() { return exclusive_scan(*this, static_cast<int>(rank() + 1), 100); }
  std::string text_before() { return exclusive_scan(*this, std::to_string(rank()), std::string("<")); }
  int total(std::size_t root) {
    const auto sum = reduce_to(*this, root, static_cast<int>(rank() + 1));
    return sum ? *sum : -1;
  }
  std::string text_at(std::size_t root) {
    const auto all = reduce_to(*this, root, std::to_string(rank()), [](std::string a, const std::string& b) {
      if (b == "4" && a.empty()) throw std::range_error("4");
      return a + b;
    });
    return all.value_or("nothing");
  }
  std::vector<std::string> gather_at(std::size_t root) { return gather_to(*this, root, std::to_string(10 * rank())); }
  std::size_t rounds(std::size_t n) {  // one after the other, each with another root
    std::size_t seen = 0;
    for (std::size_t i = 0; i < n; ++i)
      if (const auto sum = reduce_to(*this, i % size(), i + rank())) seen += *sum;
    return seen;
  }
  // One member names another root than the others. True if it hears of both.
  bool at_odds(std::size_t odd, std::size_t root, std::size_t other) {
    const std::size_t mine = rank() == odd ? other : root;
    const auto hears = [&](const auto& exchange) {
      try {
        exchange();
      } catch (const usage_error& e) {
        const std::string text = e.what();
        return text.contains("rank " + std::to_string(root)) && text.contains("rank " + std::to_string(other));
      }
      return false;
    };
    return hears([&] { (void)broadcast_from(*this, mine, std::string("?")); }) &&
           hears([&] { (void)reduce_to(*this, mine, 1); }) && hears([&] { (void)gather_to(*this, mine, 1); });
  }
  void each_its_own() { (void)broadcast_from(*this, rank(), 1); }
  int failing(std::size_t root) {
    const auto op = [](int a, int b) { return b == 3 ? throw std::range_error("3") : a + b; };
    return reduce_to(*this, root, static_cast<int>(rank()), op).value_or(0);
  }
  // One member gives too few values. True if it hears of that.
  bool exchange_too_few(std::size_t odd) {
    try {
      (void)all_to_all(*this, std::vector<int>(rank() == odd ? size() - 1 : size()));
    } catch (const usage_error&) {
      return true;
    }
    return false;
  }
  std::vector<int> exchange(std::size_t n) {
    std::vector<int> mine(n);
    for (std::size_t i = 0; i < n; ++i) mine[i] = static_cast<int>(100 * rank() + i);
    return all_to_all(*this, std::move(mine));
  }
};
ORRERY_PROCESS(Member, gather, hear, sum, text, before, text_before, total, text_at, gather_at, rounds, at_odds,
               each_its_own, failing, exchange_too_few, exchange);

void exchanged() {
  for (const auto& where : {everywhere(), in_blocks()}) {
    const auto g = spawn_group<Member>(where, 5);
    check(g->gather() == std::vector(5, std::vector{0, 10, 20, 30, 40}), "all_gather");
    check(g->hear(3) == std::vector(5, std::string("from 3")), "broadcast_from");
    check(g->sum() == std::vector{0, 1, 3, 6, 10}, "scan");
    check(g->text() == std::vector<std::string>{"0", "10", "210", "3210", "43210"}, "scan, in order");
    const auto all = g->exchange(5);
    for (int i = 0; i < 5; ++i) check(all[i] == std::vector{i, 100 + i, 200 + i, 300 + i, 400 + i}, "all_to_all");
    thrown<usage_error>("too many values", [&] { g->exchange(6); });
    for (std::size_t odd = 0; odd < 5; ++odd) {
      const auto heard = g->exchange_too_few(odd);
      check(std::ranges::count(heard, true) == 5, "all members hear of one that gives too few values");
    }
    thrown<usage_error>("no such rank", [&] { g->hear(5); });
  }
}

void gathered() {
  for (const auto& where : {everywhere(), in_blocks()}) {
    const auto g = spawn_group<Member>(where, 5);
    check(g->before() == std::vector{100, 101, 103, 106, 110}, "exclusive_scan");
    check(g->text_before() == std::vector<std::string>{"<", "<0", "<01", "<012", "<0123"}, "exclusive_scan, in order");
    for (std::size_t root = 0; root < 5; ++root) {
      std::vector<int> sum(5, -1);
      sum[root] = 15;
      check(g->total(root) == sum, "reduce_to");
      std::vector<std::string> text(5, "nothing");
      text[root] = "01234";
      check(g->text_at(root) == text, "reduce_to, in order");
      std::vector<std::vector<std::string>> all(5);
      all[root] = {"0", "10", "20", "30", "40"};
      check(g->gather_at(root) == all, "gather_to");
      thrown<std::range_error>("the operation of reduce_to", [&] { (void)g->failing(root); });
    }
    check(g->rounds(20) == std::vector<std::size_t>{190, 210, 230, 250, 270}, "one after the other");
    thrown<usage_error>("no such rank", [&] { (void)g->total(5); });
  }
}

void of_different_roots() {
  for (const auto& where : {everywhere(), in_blocks()}) {
    const auto g = spawn_group<Member>(where, 5);
    for (std::size_t odd = 0; odd < 5; ++odd)
      for (const std::size_t other : {odd == 4 ? 3uz : 4uz, 7uz, 0xffff'ffffuz}) {  // two are no ranks
        const auto heard = g->at_odds(odd, 2, other);
        check(std::ranges::count(heard, true) == 5, "all members hear of both roots");
      }
    thrown<usage_error>("each another root", [&] { g->each_its_own(); });
    check(g->total(2)[2] == 15 && g->hear(1)[4] == "from 1", "later ones go on");
    thrown<usage_error>("a rank that no group has", [&] { (void)g->total(0xffff'ffff); });
    thrown<usage_error>("gather_to a rank that is not there", [&] { (void)g->gather_at(5); });
  }
}

using made_groups = testing::in_each_way;
INSTANTIATE_IN_FOUR_WAYS(made_groups);
TEST_P(made_groups, consist_of_processes_that_were_there) { EXPECT_EQ(wrong_in("made"), ""); }
TEST_P(made_groups, take_one_argument_for_each_member) { EXPECT_EQ(wrong_in("scattered"), ""); }
TEST_P(made_groups, and_others_exchange_values) { EXPECT_EQ(wrong_in("exchanged"), ""); }
TEST_P(made_groups, and_others_give_values_to_one_member) { EXPECT_EQ(wrong_in("gathered"), ""); }
TEST_P(made_groups, and_others_tell_all_members_of_different_roots) { EXPECT_EQ(wrong_in("of_different_roots"), ""); }

TEST(made_groups_of_a_lost_node, are_called_and_dismissed_on_the_others) {
  EXPECT_EQ(testing::wrong_where_a_node_is_lost("member_lost"), "");
}

const orrery::testing::scenarios_of_file of_this({{"made", made},
                                                  {"member_lost", member_lost},
                                                  {"scattered", scattered},
                                                  {"exchanged", exchanged},
                                                  {"gathered", gathered},
                                                  {"of_different_roots", of_different_roots}});

}  // namespace made_groups_tests
}  // namespace orrery
