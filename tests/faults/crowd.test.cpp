// SPDX-License-Identifier: Apache-2.0
// More PEs than the machine has cores: everything works, and ends.
#include "../support/scenario.hpp"

#include <numeric>
#include <span>

#include <sched.h>

namespace orrery::faults {
namespace crowd_tests {

using namespace testing;

struct cell;
ORRERY_PROCESS(cell, add, total, ask, meet, all_ranks);
struct cell : member<cell> {
  void add(int n) { sum += n; }
  int total() { return sum; }
  double ask(std::span<const double> v) { return std::accumulate(v.begin(), v.end(), 0.0); }
  void meet(int rounds) {
    for (int i = 0; i < rounds; ++i) barrier();
  }
  long all_ranks() { return all_reduce(static_cast<long>(rank())); }
  int sum = 0;
};

// Calls and posts to each of the others, small and large.
int talk_to_all(const group<cell>& cells, int rounds) {
  const std::vector<double> large(3000, 1.0);
  int wrong = 0;
  for (int r = 0; r < rounds; ++r) {
    std::vector<future<double>> answers;
    for (const auto c : cells) {
      post(c)->add(1);
      answers.push_back(start(c)->ask(large));
      if (c->ask(std::vector<double>{1.0, 2.0}) != 3.0) ++wrong;
    }
    for (auto& a : answers)
      if (a.get() != 3000.0) ++wrong;
  }
  return wrong;
}

void all_talk_to_all() {
  constexpr int rounds = slowed_down ? 2 : 8;
  const std::uint32_t n = world_pes();
  const auto cells = spawn_group<cell>(everywhere(), n);
  std::vector<future<int>> talks;
  for (std::uint32_t p = 0; p < n; ++p) talks.push_back(start_call<&talk_to_all>(pe(p), cells, rounds));
  for (auto& t : talks) check(t.get() == 0, "a wrong answer");
  quiescence();
  for (const auto c : cells) check(c->total() == static_cast<int>(n) * rounds, "a post was lost or came twice");
  cells->meet(20);
  for (const long sum : cells->all_ranks()) check(sum == static_cast<long>(n) * (n - 1) / 2, "all_reduce");
}

void pass_on(std::uint32_t left) {
  const auto next = pe((this_pe() + 1) % world_pes());
  if (left == 0) return;
  call<&pass_on>(next, left - 1);
}
void a_chain_round_all() {
  for (int i = 0; i < 10; ++i) pass_on(4 * world_pes());
}

void say_pes() { fmt::print(stderr, "{} PEs\n", world_pes()); }

// This thread, and what it starts, on the first n of the cores that it may use; all of them again at the end of the scope.
class on_cores {
 public:
  explicit on_cores(int n) {
    ::sched_getaffinity(0, sizeof all_, &all_);
    cpu_set_t some;
    CPU_ZERO(&some);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&some) < n; ++cpu)
      if (CPU_ISSET(cpu, &all_)) CPU_SET(cpu, &some);
    count = CPU_COUNT(&some);
    ::sched_setaffinity(0, sizeof some, &some);
  }
  on_cores(const on_cores&) = delete;
  on_cores& operator=(const on_cores&) = delete;
  ~on_cores() { ::sched_setaffinity(0, sizeof all_, &all_); }
  int count = 0;

 private:
  cpu_set_t all_{};
};

TEST(a_node, has_a_pe_for_each_core_that_it_may_use_unless_it_is_told_otherwise) {
  for (const int n : {1, 2}) {
    const on_cores some(n);
    EXPECT_EQ(outcome_of({"--scenario=pes"}), fmt::format("{} PEs\ngood", some.count));
    EXPECT_EQ(outcome_of({"--scenario=pes", "--orrery-pes=3"}), "3 PEs\ngood");
  }
}

void say_nodes() { fmt::print(stderr, "{} nodes\n", world_nodes()); }
void runs_inside() {
  std::string name = "inside";
  char* arguments[] = {name.data(), nullptr};
  check_contains(thrown<usage_error>("run", [&] { (void)run(1, arguments, [](const args&) { return 0; }); }),
                 "a runtime runs here already");
  check(call<&this_pe>(pe(world_pes() - 1)) == world_pes() - 1, "it does not run any more");
}

TEST(a_program, may_run_again_and_each_node_takes_part_once) {
  EXPECT_EQ(outcome_of({"--again", "--scenario=nodes", "--orrery-nodes=3", "--orrery-pes=1"}),
            "3 nodes\n3 nodes\ngood");
  EXPECT_EQ(outcome_of({"--again", "--scenario=nodes", "--orrery-pes=2"}), "1 nodes\n1 nodes\ngood");
}
TEST(a_program, cannot_run_inside_itself) {
  EXPECT_EQ(outcome_of({"--scenario=inside", "--orrery-pes=2"}), "good");
  EXPECT_EQ(outcome_of({"--scenario=inside", "--orrery-nodes=2", "--orrery-pes=1"}), "good");
}

TEST(more_pes_than_cores, of_one_node_all_work) {
  EXPECT_EQ(outcome_of({"--scenario=talk", "--orrery-pes=8"}), "good");
  EXPECT_EQ(outcome_of({"--scenario=chain", "--orrery-pes=8"}), "good");
}
TEST(more_pes_than_cores, of_four_nodes_all_work) {
  EXPECT_EQ(outcome_of({"--scenario=talk", "--orrery-nodes=4", "--orrery-pes=4"}), "good");
  EXPECT_EQ(outcome_of({"--scenario=chain", "--orrery-nodes=4", "--orrery-pes=4"}), "good");
}
TEST(more_pes_than_cores, that_spin_all_work) {
  EXPECT_EQ(outcome_of({"--scenario=talk", "--orrery-nodes=3", "--orrery-pes=2", "--orrery-waiting=wait"}), "good");
}

const orrery::testing::scenarios_of_file of_this({{"pes", say_pes},
                                                  {"nodes", say_nodes},
                                                  {"inside", runs_inside},
                                                  {"talk", all_talk_to_all},
                                                  {"chain", a_chain_round_all}});

}  // namespace crowd_tests
}  // namespace orrery::faults
