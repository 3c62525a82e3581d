// SPDX-License-Identifier: Apache-2.0
// A computation with an array, a group and a process, that goes on in another world: on another number of nodes and PEs, and after a node was
// killed while it wrote.
#include "../support/scenario.hpp"

#include <orrery/array/checkpoint.hpp>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

namespace {

using namespace orrery;
using orrery::testing::check;
using orrery::testing::check_contains;
using orrery::testing::program;
using orrery::testing::thrown;

std::string folder;

// Whole numbers, and sums of what comes in any order: so that each run gives the same.
using number = std::uint64_t;
constexpr number prime = 1'000'003;

struct Settings;
ORRERY_PROCESS(Settings, factor, asked);
struct Settings {
  number factor() {
    ++asked_;
    return 7;
  }
  number asked() const { return asked_; }
  template <class A>
  void serialize(A& a) {
    a & asked_;
  }
  number asked_ = 0;
};

struct Solver;
ORRERY_PROCESS(Solver, know, correct, turn, taken);
struct Solver : member<Solver> {
  void know(remote<Settings> s) { settings = s; }
  number correct(number value) {
    taken_ = (taken_ + value * settings->factor()) % prime;
    return value * (rank() + 2) % prime;
  }
  // All at once: each is told by its neighbour.
  void turn() {
    taken_ = (taken_ + rank()) % prime;
    const number all = all_reduce(taken_);
    taken_ = (taken_ * 3 + all) % prime;
  }
  number taken() const { return taken_; }
  template <class A>
  void serialize(A& a) {
    a & taken_ & settings;
  }
  number taken_ = 0;
  remote<Settings> settings;
};
using solver_group = group<Solver>;

// What happens while an element is being written.
enum class accident { none, waits_for_ever, kills_its_node };
accident to_come = accident::none;

struct Cell;
ORRERY_PROCESS(Cell, know, step, take, turn, value);
struct Cell : element<Cell> {
  explicit Cell(number v = 0) : value_(v) {}
  void know(solver_group g, remote<Settings> s) {
    solvers["all"] = g;
    settings = s;
    right = this_array()[(this_index() + 1) % 30];
  }
  void step() {
    const auto& g = solvers.at("all");
    const number mine = g[static_cast<std::size_t>(this_index()) % g.size()]->correct(value_);
    post(right)->take((mine + settings->factor()) % prime);
  }
  void take(number v) { next_ = (next_ + v) % prime; }
  void turn() {
    value_ = (value_ * 5 + next_) % prime;
    next_ = 0;
  }
  number value() const { return value_; }
  template <class A>
  void serialize(A& a) {
    a & value_ & next_ & solvers & settings & right;
    if (A::is_saving::value && index_or_none() == 17) meet_accident();
  }

 private:
  int index_or_none() const { return to_come == accident::none ? -1 : this_index(); }
  static void meet_accident() {
    if (to_come == accident::kills_its_node) orrery::testing::kill_own_node();
    fmt::print(stderr, "writing\n");
    for (;;) ::pause();
  }
  number value_ = 0;
  number next_ = 0;
  std::map<std::string, solver_group> solvers;
  remote<Settings> settings;
  element_ptr<Cell> right;
};

struct computation {
  array<Cell> grid;
  group<Solver> solvers;
  remote<Settings> settings;

  void run(int steps) const {
    for (int k = 0; k < steps; ++k) {
      post(grid)->step();
      quiescence();
      post(grid)->turn();
      solvers->turn();
      quiescence();
    }
  }
  void save() const { checkpoint(folder, grid, solvers, settings); }
  std::vector<number> result() const {
    std::vector<number> all;
    for (int k = 0; k < 30; ++k) all.push_back(grid[k]->value());
    for (const number n : solvers->taken()) all.push_back(n);
    all.push_back(settings->asked());
    return all;
  }
};
computation begin() {
  computation c{
      create_array<Cell>(range<int>{30}, {.name = "grid", .home = placement_map<int>::blocks(30)}, {}, number{3}),
      spawn_group<Solver>(in_blocks(), 7), spawn<Settings>(pe(world_pes() - 1))};
  c.solvers->know(c.settings);
  for (int k = 0; k < 30; ++k) {
    c.grid[k]->know(c.solvers, c.settings);
    if (k % 4 == 0) post_migrate(c.grid[k], static_cast<std::uint32_t>(k) % world_pes());
  }
  quiescence();
  return c;
}
computation come_back() {
  auto [grid, solvers, settings] = restore<array<Cell>, group<Solver>, remote<Settings>>(folder);
  return {grid, solvers, settings};
}

constexpr int before = 4;
constexpr int after = 5;

void save() {
  const computation c = begin();
  c.run(before);
  c.save();
  c.run(1);  // nobody hears of that
}
void go_on() {
  const computation restarted = come_back();
  restarted.run(after);
  const computation whole = begin();
  whole.run(before + after);
  check(restarted.result() == whole.result(),
        fmt::format("the result is {} instead of {}", fmt::join(restarted.result(), " "),
                    fmt::join(whole.result(), " ")));
}
void set_accident(int a) { to_come = static_cast<accident>(a); }
void save_with(accident a) {
  const computation c = begin();
  c.run(1);
  for (std::uint32_t n = 0; n < world_pes(); ++n) call<&set_accident>(pe(n), static_cast<int>(a));
  c.save();
}
void save_and_wait() { save_with(accident::waits_for_ever); }
void save_and_lose_a_node() {
  thrown<node_lost>("a checkpoint", [] { save_with(accident::kills_its_node); });
}
void find_nothing() {
  check_contains(thrown<usage_error>("a restart", [] { (void)come_back(); }), "not finished");
}

// --- the tests -----------------------------------------------------------------------------------------------------

struct shape {
  int nodes;
  int pes;
};

class checkpoint_across_nodes : public ::testing::Test {
 protected:
  static std::vector<std::string> options(std::string_view scenario, shape s, const std::string& in) {
    return {fmt::format("--scenario={}", scenario), fmt::format("--folder={}/saved", in),
            fmt::format("--orrery-nodes={}", s.nodes), fmt::format("--orrery-pes={}", s.pes)};
  }
  [[nodiscard]] std::string run(std::string_view scenario, shape s) const {
    return orrery::testing::outcome_of(options(scenario, s, scratch_.path()));
  }
  [[nodiscard]] bool is_finished() const { return std::filesystem::exists(scratch_.path() + "/saved/checkpoint.json"); }
  orrery::testing::scratch_directory scratch_;
};

TEST_F(checkpoint_across_nodes, what_was_saved_on_one_node_goes_on_elsewhere_as_if_nothing_had_been) {
  ASSERT_EQ(run("save", {1, 2}), "good");
  for (const shape s : {shape{1, 1}, shape{1, 5}, shape{2, 1}, shape{3, 2}}) EXPECT_EQ(run("go_on", s), "good");
}
TEST_F(checkpoint_across_nodes, what_was_saved_on_several_nodes_goes_on_elsewhere_undisturbed) {
  ASSERT_EQ(run("save", {2, 2}), "good");
  for (const shape s : {shape{1, 1}, shape{1, 3}, shape{2, 2}, shape{3, 1}}) EXPECT_EQ(run("go_on", s), "good");
}
TEST_F(checkpoint_across_nodes, a_program_that_is_killed_while_it_writes_leaves_no_checkpoint) {
  {
    program p(options("save_and_wait", {2, 1}, scratch_.path()));
    p.hear("writing");
    EXPECT_FALSE(is_finished());
    ::kill(p.pid(), SIGKILL);
    EXPECT_NE(p.end().find("killed by signal 9"), std::string::npos);
  }
  EXPECT_FALSE(is_finished());
  EXPECT_EQ(run("find_nothing", {1, 2}), "good");
  ASSERT_EQ(run("save", {1, 2}), "good");  // what lies there is no hindrance
  EXPECT_EQ(run("go_on", {2, 1}), "good");
}
TEST_F(checkpoint_across_nodes, that_loses_a_node_while_it_writes_leaves_no_checkpoint) {
  const std::string said = run("save_and_lose_a_node", {3, 1});  // also of the lost node
  EXPECT_TRUE(said.ends_with("good")) << said;
  EXPECT_FALSE(is_finished());
  EXPECT_EQ(run("find_nothing", {1, 1}), "good");
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i)
    if (const std::string_view a = argv[i]; a.starts_with("--folder=")) folder = a.substr(9);
  return orrery::testing::run_tests_or_scenario(argc, argv,
                                                {{"save", save},
                                                 {"go_on", go_on},
                                                 {"save_and_wait", save_and_wait},
                                                 {"save_and_lose_a_node", save_and_lose_a_node},
                                                 {"find_nothing", find_nothing}});
}
