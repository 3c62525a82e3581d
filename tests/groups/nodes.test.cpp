// SPDX-License-Identifier: Apache-2.0
// Groups and remote data in worlds of several nodes. Each test starts this program again as the first node of a world (--scenario=NAME
// and the runtime's options), which says on stderr what is wrong and exits with 1, or exits with 0.
#include "../support/scenario.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <numeric>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace {

using orrery::everywhere;
using orrery::group;
using orrery::in_blocks;
using orrery::remote;
using orrery::spawn;
using orrery::spawn_group;

using orrery::testing::check;
using orrery::testing::outcome_of;
using orrery::testing::thrown;

struct own_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Worker;
ORRERY_PROCESS(Worker, place, my_rank, add, sum, total, sleepy_total, fail_from, fail_own, meet, sums, text, ask_all,
               log, entries);

struct Worker : orrery::member<Worker> {
  explicit Worker(std::string n) : name(std::move(n)) {
    if (name == "bad" && rank() % 3 == 2) throw std::domain_error("rank " + std::to_string(rank()));
    if (name == "bad") barrier();
  }
  std::uint32_t place() const { return orrery::this_pe(); }
  std::size_t my_rank() const { return rank(); }
  void add(int x) { n += x; }
  int sum() const { return n; }
  long total(std::span<const long> v) const { return std::accumulate(v.begin(), v.end(), static_cast<long>(rank())); }
  long sleepy_total(std::span<const long> v) const {
    const long before = total(v);
    orrery::sleep_for(std::chrono::milliseconds(2));
    return before == total(v) ? before : -1;
  }
  void fail_from(std::size_t first) {
    if (rank() >= first) throw std::out_of_range("rank " + std::to_string(rank()));
  }
  void fail_own() { throw own_error("my own"); }
  void meet(int rounds) {
    for (int i = 0; i < rounds; ++i) barrier();
  }
  std::vector<long> sums(int rounds) {
    std::vector<long> v;
    for (int i = 0; i < rounds; ++i) v.push_back(all_reduce(static_cast<long>(rank()) * i));
    return v;
  }
  std::string text() const { return name + std::to_string(rank()) + ","; }
  std::size_t ask_all() const {
    std::size_t all = 0;
    for (const auto w : this_group())
      if (w != this_group()[rank()]) all += w->my_rank();
    return all;
  }
  void log(int x) { seen.push_back(x); }
  std::vector<int> entries() const { return seen; }

  std::string name;
  int n = 0;
  std::vector<int> seen;
};

struct Caller {
  std::vector<std::size_t> ranks(const group<Worker>& g) const { return g->my_rank(); }
};
ORRERY_PROCESS(Caller, ranks);

std::vector<std::size_t> first_numbers(std::size_t n) {
  std::vector<std::size_t> v(n);
  std::iota(v.begin(), v.end(), 0U);
  return v;
}

void calls() {
  for (const auto& where : {everywhere(), in_blocks()}) {
    constexpr std::size_t n = 13;
    auto g = spawn_group<Worker>(where, n, "w");
    check(g->my_rank() == first_numbers(n), "the results are not in the order of the ranks");
    check(start(g)->my_rank().get() == first_numbers(n), "nor are those of start");
    g->add(1);
    post(g)->add(2);
    start(g)->add(3).get();
    check(g->sum() == std::vector<int>(n, 6), "calls were lost or doubled");
    std::string expected;
    for (std::size_t i = 0; i < n; ++i) expected += "w" + std::to_string(i) + ",";
    check(g.reduce<&Worker::text>(std::plus{}) == expected, "reduce does not keep the order of the ranks");
    check(g.start_reduce<&Worker::text>(std::plus{}).get() == expected, "nor does start_reduce");
    destroy(g);
    thrown<orrery::process_gone>("a call to a destroyed group", [&] { g->add(1); });
  }
}

void views() {
  auto g = spawn_group<Worker>(everywhere(), 6, "w");
  for (const std::size_t size : {0UL, 10UL, 500UL, 600UL, 100'000UL}) {
    std::vector<long> v(size);
    std::iota(v.begin(), v.end(), 1);
    std::vector<long> expected;
    for (long r = 0; r < 6; ++r) expected.push_back(r + static_cast<long>(size * (size + 1) / 2));
    check(g->total(v) == expected, fmt::format("a broadcast of {} numbers", size));
    check(g->sleepy_total(v) == expected, fmt::format("a broadcast of {} numbers to members that wait", size));
    check(start(g)->sleepy_total(v).get() == expected, fmt::format("an asynchronous broadcast of {} numbers", size));
    for (std::size_t r = 0; r < 6; ++r)
      check(g[r]->sleepy_total(v) == expected[r], fmt::format("a call with {} numbers to a method that waits", size));
  }
}

void exceptions() {
  auto g = spawn_group<Worker>(everywhere(), 7, "w");
  for (std::size_t first = 0; first < 7; ++first) {
    const auto expected = "rank " + std::to_string(first);
    check(thrown<std::out_of_range>("fail_from", [&] { g->fail_from(first); }) == expected,
          "not the lowest rank's exception");
  }
  const std::string what = thrown<own_error>("fail_own where it is known", [&] { throw own_error("x"); });
  check(what == "x", "a test of the test");
  try {
    g->fail_own();
    check(false, "nothing was thrown");
  } catch (const std::runtime_error& e) {
    check(std::string(e.what()).find("my own") != std::string::npos, e.what());
  }
  thrown<std::exception>("a constructor that throws", [] { spawn_group<Worker>(everywhere(), 9, "bad"); });
}

void barriers() {
  std::mt19937 random(1);
  for (int i = 0; i < 10; ++i) {
    const std::size_t n = 1 + random() % 40;
    auto g = spawn_group<Worker>(i % 2 == 0 ? everywhere() : in_blocks(), n, "w");
    g->meet(200);
    std::vector<long> expected;
    for (int k = 0; k < 100; ++k) expected.push_back(static_cast<long>(n * (n - 1) / 2) * k);
    for (const auto& s : g->sums(100)) check(s == expected, "all_reduce");
    destroy(g);
  }
}

void values() {
  auto g = spawn_group<Worker>(everywhere(), 9, "w");
  for (std::uint32_t p = 0; p < orrery::world_pes(); ++p)
    check(spawn<Caller>(orrery::pe(p))->ranks(g) == first_numbers(9), "a group that was sent to another node");
  std::vector<orrery::future<std::size_t>> asked;
  for (std::size_t r = 0; r < 9; r += 3) check(g[r]->ask_all() == 36 - r, "a member that calls its peers");
}

void order() {
  std::mt19937 random(2);
  auto g = spawn_group<Worker>(everywhere(), 6, "w");
  std::vector<std::vector<int>> expected(6);
  for (int i = 0; i < 3000; ++i) {
    const std::size_t to = random() % 6;
    if (random() % 3 == 0) {
      post(g)->log(i);
      for (auto& e : expected) e.push_back(i);
    } else {
      post(g[to])->log(i);
      expected[to].push_back(i);
    }
  }
  check(g->entries() == expected, "messages to the group and to its members are out of order");
}

void data() {
  for (std::uint32_t p = 0; p < orrery::world_pes(); ++p) {
    for (const std::size_t size : {1UL, 400UL, 600UL, 1'000'000UL}) {
      std::vector<double> v(size);
      std::iota(v.begin(), v.end(), 0.5);
      auto d = spawn<double[]>(orrery::pe(p), size);
      d.write(0, v);
      std::vector<double> back(size);
      d.read(0, back);
      check(back == v, fmt::format("{} numbers on PE {} changed", size, p));
      check(d[size - 1] == v.back(), "the last element");
      d[0] += 2;
      check(d[0] == 2.5, "an element that was changed");
      const std::string what = thrown<std::out_of_range>("an index outside", [&] { d[size] = 1; });
      check(what.find(std::to_string(size)) != std::string::npos, what);
      thrown<std::out_of_range>("a range outside", [&] { d.read(1, back); });
      destroy(d);
    }
  }
}

void die() { std::raise(SIGKILL); }

void loss() {
  auto g = spawn_group<Worker>(everywhere(), 6, "w");
  auto here = start(g[0])->meet(1);
  const std::uint32_t victim = orrery::world_pes() - 1;
  auto called = start(g)->meet(1'000'000'000);
  orrery::sleep_for(std::chrono::milliseconds(20));
  orrery::post_call<&die>(orrery::pe(victim));
  thrown<orrery::node_lost>("a broadcast to a group of which a node is lost", [&] { called.get(); });
  here.wait();
  thrown<orrery::node_lost>("a call of that group", [&] { g->add(1); });
  thrown<orrery::node_lost>("a barrier of that group", [&] { g[0]->meet(1); });
  g[0]->add(1);
}

// The program ends while members meet.
void end_inside() {
  const auto g = spawn_group<Worker>(everywhere(), 6, "w");
  const auto called = start(g)->meet(1'000'000'000);
  const auto asked = start(g)->sums(1'000'000'000);
  orrery::sleep_for(std::chrono::milliseconds(20));
}

// --- the tests -----------------------------------------------------------------------------------------------------

struct shape {
  int nodes;
  int pes;
};

class group_across_nodes : public ::testing::TestWithParam<shape> {
 protected:
  // What a world of that shape says before it fails; nothing if it does not.
  static std::string said_in(std::string_view scenario) {
    return outcome_of({fmt::format("--scenario={}", scenario), fmt::format("--orrery-nodes={}", GetParam().nodes),
                       fmt::format("--orrery-pes={}", GetParam().pes)});
  }
  static std::string wrong_in(std::string_view scenario) {
    const std::string said = said_in(scenario);
    return said.ends_with("good") ? "" : said;
  }
};
INSTANTIATE_TEST_SUITE_P(of, group_across_nodes, ::testing::Values(shape{2, 1}, shape{3, 1}, shape{2, 2}),
                         [](const auto& i) { return fmt::format("{}_nodes_of_{}_pes", i.param.nodes, i.param.pes); });

TEST_P(group_across_nodes, calls_reach_all_members) { EXPECT_EQ(wrong_in("calls"), ""); }
TEST_P(group_across_nodes, views_are_read_in_place_as_long_as_a_method_runs) { EXPECT_EQ(wrong_in("views"), ""); }
TEST_P(group_across_nodes, the_exception_of_the_lowest_rank_arrives) { EXPECT_EQ(wrong_in("exceptions"), ""); }
TEST_P(group_across_nodes, members_meet_in_barriers_and_reductions) { EXPECT_EQ(wrong_in("barriers"), ""); }
TEST_P(group_across_nodes, a_group_can_be_sent) { EXPECT_EQ(wrong_in("values"), ""); }
TEST_P(group_across_nodes, messages_of_one_sender_keep_their_order) { EXPECT_EQ(wrong_in("order"), ""); }
TEST_P(group_across_nodes, remote_data_is_read_and_written) { EXPECT_EQ(wrong_in("data"), ""); }
TEST_P(group_across_nodes, a_lost_node_is_heard_of_by_those_who_wait) { EXPECT_EQ(wrong_in("loss"), ""); }
TEST_P(group_across_nodes, nothing_is_said_of_members_that_meet_when_the_program_ends) {
  EXPECT_EQ(said_in("end_inside"), "good");
}

}  // namespace

int main(int argc, char** argv) {
  return orrery::testing::run_tests_or_scenario(argc, argv,
                                                {{"calls", calls},
                                                 {"views", views},
                                                 {"exceptions", exceptions},
                                                 {"barriers", barriers},
                                                 {"values", values},
                                                 {"order", order},
                                                 {"data", data},
                                                 {"loss", loss},
                                                 {"end_inside", end_inside}});
}
