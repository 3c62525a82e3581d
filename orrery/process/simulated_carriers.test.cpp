// SPDX-License-Identifier: Apache-2.0
// Worlds whose machines talk through simulated carriers: frames, mirrors of rings, evictions.
#include <orrery/orrery.hpp>
#include <orrery/process/detail/simulation.hpp>
#include <orrery/process/internal/test_world.hpp>
#include <orrery/scheduler/simulator.hpp>
#include <orrery/transport/internal/test_seed.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace orrery::simulated_carriers_tests {

class Notes {
 public:
  void add(int n) { all_.push_back(n); }
  std::vector<int> all() { return all_; }
  std::vector<char> echo(std::vector<char> block) { return block; }

 private:
  std::vector<int> all_;
};

class Member {
 public:
  std::uint32_t where() { return this_pe(); }
};

ORRERY_PROCESS(Notes, add, all, echo);
ORRERY_PROCESS(Member, where);

namespace {

using testing::in_simulation;

std::string with_carriers(std::uint64_t seed, std::string_view more = {}) {
  return fmt::format("machines=4,carriers=on,jitter=5us,seed={}{}", seed, more);
}

void everybody_writes() {
  const auto notes = spawn<Notes>(pe(world_pes() - 1));
  for (int i = 0; i < 200; ++i) post(notes)->add(i);
  const auto g = spawn_group<Member>(everywhere(), world_pes());
  for (std::uint32_t p = 0; p < world_pes(); ++p) EXPECT_EQ(g[p]->where(), p);
  publish("/notes", notes);
  EXPECT_EQ(lookup<Notes>("/notes")->all().size(), 200U);
  const std::vector<int> all = notes->all();
  EXPECT_TRUE(std::ranges::is_sorted(all));
}

TEST(simulated_carriers, keep_the_order_of_posts_and_serve_groups_and_names) {
  const std::uint64_t first = testing::test_seed();
  for (std::uint64_t seed = first; seed < first + 20; ++seed) {
    SCOPED_TRACE(seed);
    in_simulation(with_carriers(seed, ",pes=2"), everybody_writes);
    in_simulation(with_carriers(seed, ",nodes=2"), everybody_writes);
  }
}

TEST(simulated_carriers, do_the_same_again_with_the_same_seed) {
  const auto time_with = [](std::uint64_t seed) {
    scheduler::sim_report report;
    in_simulation(with_carriers(seed), everybody_writes, &report);
    return std::pair{report.time_ns, report.events};
  };
  EXPECT_EQ(time_with(7), time_with(7));
  EXPECT_NE(time_with(7), time_with(8));
}

TEST(simulated_carriers, bring_blocks_behind_their_records) {
  in_simulation(with_carriers(testing::test_seed()), [] {
    const auto notes = spawn<Notes>(pe(world_pes() - 1));
    std::vector<future<std::vector<char>>> answers;
    for (std::size_t n = 1; n <= 16; ++n)
      answers.push_back(start(notes)->echo(std::vector<char>(n << 16, static_cast<char>(n))));
    post(notes)->add(1);
    for (std::size_t n = 1; n <= 16; ++n)
      EXPECT_EQ(answers[n - 1].get(), std::vector<char>(n << 16, static_cast<char>(n)));
    EXPECT_EQ(notes->all(), std::vector<int>{1});
  });
}

TEST(simulated_carriers, hold_back_senders_by_the_credit_of_small_rings) {
  scheduler::node_settings settings;
  settings.pe.ring_bytes = 4096;
  in_simulation(parse_simulation(with_carriers(testing::test_seed())), settings, [] {
    const auto notes = spawn<Notes>(pe(world_pes() - 1));
    for (int i = 0; i < 5'000; ++i) post(notes)->add(i);
    const std::vector<int> all = notes->all();
    EXPECT_EQ(all.size(), 5'000U);
    EXPECT_TRUE(std::ranges::is_sorted(all));
  });
}

// Nobody hangs, whoever hears of it first; and the others go on.
TEST(simulated_carriers, tell_each_node_of_a_lost_one_in_its_own_time) {
  const std::uint64_t first = testing::test_seed();
  for (std::uint64_t seed = first; seed < first + 40; ++seed) {
    SCOPED_TRACE(seed);
    const testing::leaks_expected of_the_lost_node;
    ::testing::internal::CaptureStderr();
    in_simulation(with_carriers(seed, fmt::format(",lose=2@{}us,detect={}us", 70 + seed % 100, seed % 30)), [] {
      const auto other = spawn<Notes>(pe(1));
      const auto lost = spawn<Notes>(pe(2));
      EXPECT_THROW(for (;;)(void) lost->all(), node_lost);
      EXPECT_TRUE(other->all().empty());
      EXPECT_THROW((void)spawn<Notes>(pe(2)), node_lost);
    });
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("orrery: node 2 was lost at "), std::string::npos) << said;
    EXPECT_EQ(said.find("simulated node"), std::string::npos) << said;
  }
}

TEST(simulated_carriers, end_the_world_when_the_first_node_is_lost) {
  ::testing::internal::CaptureStderr();
  const testing::leaks_expected of_the_lost_node;
  in_simulation(with_carriers(testing::test_seed(), ",lose=0@50us"), [] {
    const auto notes = spawn<Notes>(pe(1));
    for (;;) (void)notes->all();
  });
  const std::string said = ::testing::internal::GetCapturedStderr();
  for (int node = 1; node < 4; ++node) {
    const std::string line = fmt::format(
        "orrery: the first node of the world was lost at 50000 ns of virtual time: node {} ends too\n", node);
    EXPECT_NE(said.find(line), std::string::npos) << said;
  }
}

TEST(simulated_carriers, are_on_or_off) { EXPECT_THROW((void)parse_simulation("carriers=perhaps"), world_error); }

}  // namespace
}  // namespace orrery::simulated_carriers_tests
