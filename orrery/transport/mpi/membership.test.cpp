// SPDX-License-Identifier: Apache-2.0
// Carriers of several machines over a simulated network with a simulated clock: whatever is late,
// cut or stopped, one world is left.
#include <orrery/transport/internal/test_sanitized.hpp>
#include <orrery/transport/mpi/internal/test_cluster.hpp>

namespace orrery::transport {
namespace membership_tests {

using testing::ms;
using testing::patience;
using testing::simulated_cluster;

TEST(machines_in_a_world, lose_nobody_while_messages_are_late) {
  simulated_cluster c(4);
  (void)c.at(1).talk_to(2);
  c.run_for(20 * patience);
  for (std::uint32_t n = 0; n < 4; ++n) {
    EXPECT_FALSE(c.at(n).ended) << c.at(n).why;
    EXPECT_TRUE(c.at(n).lost().empty());
  }
}

TEST(machines_in_a_world, lose_one_that_no_longer_reaches_the_first_and_it_ends) {
  simulated_cluster c(3);
  c.cut_both(0, 2);
  c.run_for(5 * patience);
  EXPECT_EQ(c.disagreement(), "");
  EXPECT_EQ(c.at(0).lost(), std::vector<std::uint32_t>{2});
  EXPECT_NE(c.at(2).why.find("the first node of the world was silent for 1000 ms: node 2 ends too"), std::string::npos)
      << c.at(2).why;
}

TEST(machines_in_a_world, end_one_that_is_heard_by_others_but_does_not_hear_the_first) {
  simulated_cluster c(3);
  c.cut(0, 2);
  c.run_for(5 * patience);
  EXPECT_EQ(c.disagreement(), "");
  EXPECT_EQ(c.at(0).lost(), std::vector<std::uint32_t>{2});
}

// One hears the other, and is not heard: the first node believes who misses somebody.
TEST(machines_in_a_world, lose_one_whose_messages_do_not_reach_another_that_it_talks_to) {
  simulated_cluster c(4);
  (void)c.at(1).talk_to(2);
  (void)c.at(2).talk_to(1);
  c.run_for(patience / 2);
  c.cut(1, 2);
  c.run_for(6 * patience);
  EXPECT_EQ(c.disagreement(), "");
  EXPECT_EQ(c.at(0).lost(), std::vector<std::uint32_t>{1});
  EXPECT_NE(c.at(1).why.find("as it was silent for 1500 ms (seen by node 2)"), std::string::npos) << c.at(1).why;
}

TEST(machines_in_a_world, lose_one_of_two_that_talk_and_are_cut_from_each_other) {
  simulated_cluster c(4);
  (void)c.at(1).talk_to(2);
  (void)c.at(2).talk_to(1);
  c.run_for(patience / 2);
  c.cut_both(1, 2);
  c.run_for(6 * patience);
  EXPECT_EQ(c.disagreement(), "");
  ASSERT_EQ(c.at(0).lost().size(), 1);
  const std::uint32_t lost = c.at(0).lost()[0];
  EXPECT_TRUE(lost == 1 || lost == 2);
  EXPECT_NE(
      c.at(lost).why.find("is taken for lost by the first node of the world, as it was silent for 1500 ms (seen by"),
      std::string::npos)
      << c.at(lost).why;
}

TEST(machines_in_a_world, keep_two_that_are_cut_from_each_other_and_never_talk) {
  simulated_cluster c(4);
  c.cut_both(1, 2);
  c.run_for(6 * patience);
  EXPECT_EQ(c.disagreement(), "");
  EXPECT_TRUE(c.at(0).lost().empty());
}

TEST(machines_in_a_world, end_one_that_was_stopped_for_too_long_when_it_goes_on) {
  simulated_cluster c(3);
  (void)c.at(2).talk_to(1);
  c.run_for(patience / 2);
  c.at(2).stopped = true;
  c.run_for(4 * patience);
  EXPECT_FALSE(c.at(2).ended);
  c.at(2).stopped = false;
  c.run_for(patience / 2);
  EXPECT_EQ(c.disagreement(), "");
  EXPECT_NE(c.at(2).why.find("node 2 is taken for lost by the first node of the world, as it was silent"),
            std::string::npos)
      << c.at(2).why;
}

TEST(machines_in_a_world, keep_one_that_was_stopped_for_less) {
  simulated_cluster c(3);
  c.at(2).stopped = true;
  c.run_for(patience * 6 / 10);
  c.at(2).stopped = false;
  c.run_for(4 * patience);
  EXPECT_EQ(c.disagreement(), "");
  EXPECT_TRUE(c.at(0).lost().empty());
}

// A debugger stops it at a breakpoint, for as long as its user thinks.
TEST(machines_in_a_world, keep_one_that_a_debugger_stops_however_long) {
  for (const std::uint32_t held : {0U, 2U}) {
    simulated_cluster c(4);
    (void)c.at(1).talk_to(2);
    (void)c.at(2).talk_to(1);
    c.run_for(patience);
    c.at(held).debugged = true;
    c.run_for(patience);
    c.at(held).stopped = true;
    c.run_for(patience / 10);
    (void)c.at(3).talk_to(held);  // a node that begins to watch it now has heard of no debugger
    c.run_for(20 * patience);
    c.at(held).stopped = false;
    c.run_for(3 * patience);
    for (std::uint32_t n = 0; n < 4; ++n) {
      EXPECT_FALSE(c.at(n).ended) << c.at(n).why;
      EXPECT_TRUE(c.at(n).lost().empty()) << "of node " << held;
    }
  }
}

TEST(machines_in_a_world, lose_one_that_is_stopped_after_its_debugger_has_gone) {
  simulated_cluster c(3);
  c.at(2).debugged = true;
  c.run_for(2 * patience);
  c.at(2).debugged = false;
  c.run_for(patience);
  c.at(2).stopped = true;
  c.run_for(4 * patience);
  c.at(2).stopped = false;
  c.run_for(patience);
  EXPECT_EQ(c.disagreement(), "");
  EXPECT_EQ(c.at(0).lost(), std::vector<std::uint32_t>{2});
}

// The first node ignores that it is silent for another one, which is cut from it, as long as it has
// a debugger. When that has gone, the other one says so again, whether it knew of the debugger.
TEST(machines_in_a_world, lose_one_that_is_cut_from_another_when_its_debugger_has_gone) {
  for (const bool knew : {false, true}) {
    simulated_cluster c(4);
    (void)c.at(1).talk_to(2);
    (void)c.at(2).talk_to(1);
    c.run_for(patience / 2);
    if (!knew) c.cut(2, 1);
    c.at(2).debugged = true;
    c.run_for(patience / 2);
    if (knew) c.cut(2, 1);
    c.run_for(6 * patience);
    EXPECT_TRUE(c.at(0).lost().empty()) << "in its debugger";
    c.at(2).debugged = false;
    c.run_for(4 * patience);
    EXPECT_EQ(c.at(0).lost(), std::vector<std::uint32_t>{2}) << (knew ? "it knew" : "it did not know");
    EXPECT_EQ(c.disagreement(), "");
  }
}

TEST(machines_in_a_world, lose_one_that_is_killed_after_its_silence_was_ignored) {
  simulated_cluster c(4);
  (void)c.at(1).talk_to(2);
  (void)c.at(2).talk_to(1);
  c.run_for(patience / 2);
  c.cut(2, 1);
  c.at(2).debugged = true;
  c.run_for(patience);
  c.at(2).stopped = true;
  c.run_for(4 * patience);
  EXPECT_TRUE(c.at(0).lost().empty());
  c.at(1).carrier().report_lost(2, "was killed by signal 9");
  c.run_for(patience);
  EXPECT_EQ(c.at(0).lost(), std::vector<std::uint32_t>{2});
}

// A report of its end still counts.
TEST(machines_in_a_world, lose_one_that_is_killed_in_its_debugger) {
  simulated_cluster c(3);
  c.at(2).debugged = true;
  c.run_for(patience);
  c.at(2).stopped = true;
  c.at(1).carrier().report_lost(2, "was killed by signal 9");
  c.run_for(patience);
  EXPECT_EQ(c.at(0).lost(), std::vector<std::uint32_t>{2});
}

// Random cuts of single directions, stops, suspicions and damaged frames; then quiet. The first
// node is never stopped.
TEST(machines_in_a_world, are_one_world_after_any_cuts_stops_and_suspicions) {
  const std::uint64_t seed = testing::test_seed();
  for (std::uint64_t round = 0; round < (ORRERY_TEST_SANITIZED ? 10 : 60); ++round) {
    simulated_cluster c(5, seed + round);
    for (std::uint32_t a = 0; a < 5; ++a)
      for (std::uint32_t b = 0; b < 5; ++b)
        if (a != b && c.net.below(3) == 0) (void)c.at(a).talk_to(b);
    for (int step = 0; step < 12; ++step) {
      const auto a = static_cast<std::uint32_t>(c.net.below(5));
      const auto b = static_cast<std::uint32_t>(c.net.below(5));
      switch (c.net.below(8)) {
        case 0:
          if (a != b) c.cut(a, b);
          break;
        case 1:
          if (a != 0) c.at(a).stopped = !c.at(a).stopped;
          break;
        case 2:
          if (a != b && !c.at(a).ended && c.net.below(3) == 0) c.at(a).carrier().report_lost(b, "was reported");
          break;
        case 3:
          if (c.net.below(3) == 0 && !c.net.lines[{a, b, 0}].empty())
            c.net.lines[{a, b, 0}].front().bytes.back() ^= std::byte{0x40};
          break;
        default:
          break;
      }
      c.run_for(static_cast<std::int64_t>(c.net.below(1500)) * ms);
    }
    for (std::uint32_t n = 0; n < 5; ++n) c.at(n).stopped = false;
    c.run_for(8 * patience);
    ASSERT_FALSE(c.at(0).ended) << c.at(0).why;
    ASSERT_EQ(c.disagreement(), "") << "round " << round;
  }
}

}  // namespace membership_tests
}  // namespace orrery::transport
