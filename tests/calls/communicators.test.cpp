// SPDX-License-Identifier: Apache-2.0
// Collectives among some of the members of a group, in each kind of world.
#include "../support/four_ways.hpp"

#include <orrery/process/communicator.hpp>

#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>

namespace orrery {
namespace communicators_tests {

using testing::check;
using testing::check_contains;
using testing::thrown;

struct Cell;
ORRERY_PROCESS(Cell, rows_and_columns, random_parts, halves_of_halves, none_for_odd, differ);
struct Cell : member<Cell> {
  // A grid of that many columns: everything that a row and a column can tell.
  std::string rows_and_columns(std::size_t columns) {
    auto row = split(*this, rank() / columns);
    auto column = split(*this, rank() % columns);
    const std::size_t x = rank() % columns;
    const std::size_t y = rank() / columns;
    std::string wrong;
    const auto expect = [&](bool good, const char* what) {
      if (!good) wrong += std::string(what) + "; ";
    };
    expect(row.size() == columns && row.rank() == x && column.rank() == y, "ranks");
    expect(row.this_group()[x].address() == this_group()[rank()].address(), "the group");
    for (int lap = 0; lap < 3; ++lap) {
      const auto in_row = all_gather(row, rank());
      expect(in_row.front() == y * columns && in_row.back() == y * columns + columns - 1, "all_gather");
      std::string text;
      for (std::size_t i = 0; i < column.size(); ++i) text += std::to_string(i * columns + x);
      expect(column.all_reduce(std::to_string(rank())) == text, "all_reduce, in the order of the ranks");
      barrier();
      expect(scan(row, 1) == static_cast<int>(x) + 1 && exclusive_scan(column, 1, 0) == static_cast<int>(y), "scans");
      expect(broadcast_from(row, columns - 1, rank()) == y * columns + columns - 1, "broadcast_from");
      const auto sum = reduce_to(column, 0, 1);
      expect(sum.has_value() == (y == 0) && (!sum || *sum == static_cast<int>(column.size())), "reduce_to");
      expect(gather_to(row, 0, rank()).size() == (x == 0 ? columns : 0), "gather_to");
      std::vector<std::size_t> to_each(columns);
      for (std::size_t i = 0; i < columns; ++i) to_each[i] = rank() * 100 + i;
      const auto from_each = all_to_all(row, to_each);
      for (std::size_t i = 0; i < columns; ++i) expect(from_each[i] == (y * columns + i) * 100 + x, "all_to_all");
      row.barrier();
      column.barrier();
    }
    dismiss(row);
    dismiss(column);
    expect(!row && !column, "they are in none");
    return wrong;
  }

  // Random colors, that all know; some members come late.
  std::string random_parts(unsigned seed) {
    std::mt19937 random(seed);
    std::mt19937 own(seed + static_cast<unsigned>(rank()));
    for (int lap = 0; lap < 4; ++lap) {
      std::vector<std::uint64_t> colors(size());
      for (auto& c : colors) c = random() % 3;
      for (unsigned i = own() % 5; i > 0; --i) yield();
      auto part = split(*this, colors[rank()]);
      for (int again = static_cast<int>(colors[rank()]) * 2; again >= 0; --again) {
        std::vector<std::size_t> expected;
        for (std::size_t r = 0; r < size(); ++r)
          if (colors[r] == colors[rank()]) expected.push_back(r);
        if (all_gather(part, rank()) != expected) return "wrong members";
        if (part.all_reduce(rank()) != std::accumulate(expected.begin(), expected.end(), std::size_t{0}))
          return "wrong sum";
        if (own() % 2 == 0) yield();
        part.barrier();
      }
      dismiss(part);
    }
    return {};
  }

  std::size_t halves_of_halves() {
    auto half = split(*this, rank() % 2);
    auto quarter = split(half, half.rank() % 2);
    const std::size_t all = quarter.all_reduce(rank());
    dismiss(quarter);
    dismiss(half);
    return all;
  }

  int none_for_odd() {
    auto even = split(*this, rank() % 2 == 0 ? std::optional<std::uint64_t>(7) : std::nullopt);
    if (even) return even.all_reduce(1);
    try {
      return even.all_reduce(1);
    } catch (const usage_error&) {
      return -1;
    }
  }

  bool differ() {
    auto all = split(*this, 0);
    try {
      if (rank() == 0) {
        all.barrier();
      } else {
        (void)all.all_reduce(1);
      }
    } catch (const usage_error&) {
      barrier();  // of the group itself: it goes on
      return true;
    }
    return false;
  }
};

/// Of no class of members.
struct Plain {
  void enter(const group<Plain>& g) { in_ = communicator(g); }
  std::size_t rank() const { return in_.rank(); }
  int sum(int x) { return in_.all_reduce(x); }
  void meet() { in_.barrier(); }
  communicator<Plain> in_;
};
ORRERY_PROCESS(Plain, enter, rank, sum, meet);

struct Open {
  static constexpr bool orrery_reentrant = true;
  void enter(const group<Open>& g) { in_ = std::make_unique<communicator<Open>>(g); }
  void meet() { in_->barrier(); }
  std::unique_ptr<communicator<Open>> in_;
};
ORRERY_PROCESS(Open, enter, meet);

void parts() {
  for (const std::size_t rows : {1U, 2U, 3U}) {
    const auto g = spawn_group<Cell>(everywhere(), rows * 3);
    for (const std::string& wrong : g->rows_and_columns(3)) check(wrong.empty(), wrong);
    destroy(g);
  }
  const auto g = spawn_group<Cell>(in_blocks(), 7);
  for (unsigned seed = 1; seed < 6; ++seed)
    for (const std::string& wrong : g->random_parts(seed)) check(wrong.empty(), wrong);
  check(g->halves_of_halves() == std::vector<std::size_t>{0 + 4, 1 + 5, 2 + 6, 3, 0 + 4, 1 + 5, 2 + 6},
        "parts of parts");
  check(g->none_for_odd() == std::vector{4, -1, 4, -1, 4, -1, 4}, "without a color");
  check(g->differ() == std::vector<bool>(7, true), "different collectives");
}

std::vector<remote<Plain>> plain(std::size_t n) {
  std::vector<remote<Plain>> all;
  for (std::size_t i = 0; i < n; ++i) all.push_back(spawn<Plain>(pe(static_cast<std::uint32_t>(i * i) % world_pes())));
  return all;
}

void of_what_was_there() {
  const auto all = plain(6);
  const auto g = make_group({all[5], all[1], all[3]});
  g->enter(g);
  check(g->rank() == std::vector<std::size_t>{0, 1, 2}, "ranks as they stand there");
  check(g->sum(2) == std::vector{6, 6, 6}, "a sum");
  const auto whole = make_group(all);
  whole->enter(whole);
  check(whole->sum(1) == std::vector<int>(6, 6), "another group of the same");
  dismiss(whole);
  check_contains(thrown<process_gone>("dismissed", [&] { all[0]->meet(); }), "group");
  g->enter(g);
  check(g->sum(3) == std::vector{9, 9, 9}, "the first one goes on");

  thrown<usage_error>("no member", [&] { all[0]->enter(g); });
  thrown<usage_error>("main is none", [&] { (void)communicator(g); });
  const auto twice = make_group({all[0], all[0]});
  thrown<usage_error>("twice in it", [&] { all[0]->enter(twice); });
  thrown<usage_error>("in none", [&] { spawn<Plain>(here())->meet(); });
  thrown<process_gone>("one that was dismissed", [&] { all[0]->enter(whole); });

  const auto open = make_group({spawn<Open>(here()), spawn<Open>(pe(world_pes() - 1))});
  open->enter(open);
  auto first = start(open[0])->meet();
  yield();
  thrown<usage_error>("two methods at a time", [&] { open[0]->meet(); });
  open[1]->meet();
  first.get();
}

void ends() {
  for (const bool before : {false, true}) {
    for (std::size_t gone = 0; gone < 4; ++gone) {
      const auto all = plain(4);
      const auto g = make_group(all);
      g->enter(g);
      if (before) destroy(all[gone]);
      std::vector<future<void>> waits;
      for (std::size_t i = 0; i < all.size(); ++i)
        if (i != gone) waits.push_back(start(all[i])->meet());
      if (!before) destroy(all[gone]);
      for (auto& f : waits) thrown<process_gone>("a member has ended", [&] { f.get(); });
    }
  }
  const auto all = plain(4);
  const auto g = make_group(all);
  g->enter(g);
  std::vector<future<void>> waits;
  for (std::size_t i = 0; i + 1 < all.size(); ++i) waits.push_back(start(all[i])->meet());
  dismiss(g);
  for (auto& f : waits) thrown<process_gone>("it was dismissed", [&] { f.get(); });
  for (const auto& p : all) check(thrown<process_gone>("dismissed", [&] { p->meet(); }).size() > 0, "they live");
}

void lost() {
  std::vector<remote<Plain>> all;
  for (std::uint32_t p = 0; p < world_pes(); ++p) all.push_back(spawn<Plain>(pe(p)));
  const auto g = make_group(all);
  g->enter(g);
  check(g->sum(1).front() == static_cast<int>(world_pes()), "all are there");
  auto waits = start(all[0])->meet();
  auto others = start(all[1])->meet();
  post_call<&testing::kill_own_node>(pe(world_pes() - 1));
  thrown<node_lost>("a node is lost", [&] { waits.get(); });
  thrown<node_lost>("a node is lost", [&] { others.get(); });
}

void spins() {
  for (const auto begin = now(); now() - begin < std::chrono::seconds(20);) {
  }
}

// What the members' PEs have sent to that of rank 0 is in its ring when it is lost.
void lost_root() {
  const auto there = pe(world_pes() - 1);
  std::vector<remote<Plain>> all{spawn<Plain>(there)};
  for (std::uint32_t p = 0; p + 1 < world_pes(); ++p) all.push_back(spawn<Plain>(pe(p)));
  const auto g = make_group(all);
  g->enter(g);
  check(g->sum(1).front() == static_cast<int>(world_pes()), "all are there");
  const pid_t node = call<&testing::own_pid>(there);
  auto busy = start_call<&spins>(there);
  std::vector<future<int>> sums;
  for (std::size_t i = 1; i < all.size(); ++i) sums.push_back(start(all[i])->sum(1));
  sleep_for(std::chrono::milliseconds(50));
  ::kill(node, SIGKILL);
  for (auto& s : sums) thrown<node_lost>("a sum", [&] { s.get(); });
  thrown<node_lost>("a call", [&] { busy.get(); });
}

using communicators = testing::in_each_way;
INSTANTIATE_IN_FOUR_WAYS(communicators);
TEST_P(communicators, divide_a_group) { EXPECT_EQ(wrong_in("parts"), ""); }
TEST_P(communicators, are_of_any_processes) { EXPECT_EQ(wrong_in("of_what_was_there"), ""); }
TEST_P(communicators, tell_who_waits_of_ends) { EXPECT_EQ(wrong_in("ends_of_communicators"), ""); }
TEST(communicators_of_a_lost_node, tell_who_waits) {
  EXPECT_EQ(testing::wrong_where_a_node_is_lost("lost_of_communicators"), "");
}
TEST(communicators_of_a_lost_node, count_none_of_their_own_messages_as_failed) {
  const std::string said = testing::outcome_of({"--scenario=lost_root", "--orrery-nodes=3", "--orrery-failed-exit=7"});
  EXPECT_TRUE(said.ends_with("good") && !said.contains("one-way")) << said;
}

const orrery::testing::scenarios_of_file of_this({{"parts", parts},
                                                  {"of_what_was_there", of_what_was_there},
                                                  {"ends_of_communicators", ends},
                                                  {"lost_of_communicators", lost},
                                                  {"lost_root", lost_root}});

}  // namespace communicators_tests
}  // namespace orrery
