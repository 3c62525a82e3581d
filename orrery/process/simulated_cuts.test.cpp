// SPDX-License-Identifier: Apache-2.0
// Simulated networks that are cut, in one direction or in both, for a while or for ever.
#include <orrery/orrery.hpp>
#include <orrery/process/detail/simulation.hpp>
#include <orrery/process/internal/test_world.hpp>
#include <orrery/transport/internal/test_seed.hpp>

#include <algorithm>
#include <chrono>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace orrery::simulated_cuts_tests {

class Notes {
 public:
  void add(int n) { all_.push_back(n); }
  std::vector<int> all() { return all_; }

 private:
  std::vector<int> all_;
};

class Partner;
ORRERY_PROCESS(Partner, talk_to, hear, next);
class Partner {
 public:
  static constexpr bool orrery_reentrant = true;
  // Talks to the other one until that is lost, or for so long. True if it was lost.
  bool talk_to(remote<Partner> other, std::chrono::microseconds limit) {
    const auto end = now() + limit;
    try {
      for (; now() < end; sleep_for(std::chrono::microseconds(20))) other->hear();
    } catch (const node_lost&) {
      return true;
    }
    return false;
  }
  void hear() {}
  // Is never answered.
  future<int> next() { return kept_.emplace_back().get_future(); }

 private:
  std::vector<promise<int>> kept_;
};

ORRERY_PROCESS(Notes, add, all);

namespace {

using testing::in_simulation;
using namespace std::chrono_literals;

template <class Body>
void in_schedules(Body body) {
  const std::uint64_t first = testing::test_seed();
  for (std::uint64_t seed = first; seed < first + 10; ++seed) {
    SCOPED_TRACE(seed);
    body(seed);
  }
}

std::string with_cuts(std::uint64_t seed, std::string_view cuts) {
  return fmt::format("machines=4,carriers=on,jitter=5us,silence=1ms,seed={}{}", seed, cuts);
}

template <class Body>
std::string said_in(const std::string& world, Body body) {
  const testing::leaks_expected of_lost_nodes;
  ::testing::internal::CaptureStderr();
  in_simulation(world, body);
  return ::testing::internal::GetCapturedStderr();
}

int count(std::string_view text, std::string_view part) {
  int n = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string_view::npos; ++at) ++n;
  return n;
}

// The nodes that the first one still reaches, once all that a cut leads to has happened.
std::vector<std::uint32_t> nodes_that_answer() {
  std::vector<std::uint32_t> there;
  for (std::uint32_t p = 0; p < world_pes(); ++p) {
    try {
      (void)spawn<Notes>(pe(p))->all();
      there.push_back(p);
    } catch (const node_lost&) {
    }
  }
  return there;
}

// 1 and 2 talk to each other while some of their network is gone.
std::vector<std::uint32_t> survivors_of(std::uint64_t seed, std::string_view cuts, std::string& said) {
  std::vector<std::uint32_t> there;
  said = said_in(with_cuts(seed, cuts), [&] {
    const auto one = spawn<Partner>(pe(1));
    const auto two = spawn<Partner>(pe(2));
    std::vector<future<bool>> talks;
    talks.push_back(start(one)->talk_to(two, 20ms));
    talks.push_back(start(two)->talk_to(one, 20ms));
    for (auto& t : talks) {
      try {
        (void)t.get();
      } catch (const node_lost&) {
      }
    }
    there = nodes_that_answer();
  });
  return there;
}

using nodes = std::vector<std::uint32_t>;

TEST(simulated_cuts, that_are_short_lose_nobody_and_no_message) {
  in_schedules([](std::uint64_t seed) {
    const std::string said = said_in(with_cuts(seed, ",cut=0:3@20us+600us,cut=3:0@300us+700us"), [] {
      const auto notes = spawn<Notes>(pe(3));
      for (int i = 0; i < 500; ++i) {
        post(notes)->add(i);
        if (i % 10 == 0) sleep_for(5us);
      }
      const std::vector<int> all = notes->all();
      EXPECT_EQ(all.size(), 500U);
      EXPECT_TRUE(std::ranges::is_sorted(all));
    });
    EXPECT_EQ(said, "");
  });
}

TEST(simulated_cuts, of_a_node_from_all_end_it_and_its_callers_learn_it) {
  in_schedules([](std::uint64_t seed) {
    std::string said;
    const std::string_view all_of_two =
        ",cut=2:0@100us,cut=2:1@100us,cut=2:3@100us,cut=0:2@100us,cut=1:2@100us,cut=3:2@100us";
    EXPECT_EQ(survivors_of(seed, all_of_two, said), (nodes{0, 1, 3}));
    EXPECT_EQ(count(said, "orrery: node 2 was silent for 1 ms"), 1) << said;
    EXPECT_EQ(count(said, "orrery: simulated node 2: the first node of the world was silent for 1 ms: node 2 ends too"),
              1)
        << said;
  });
}

// The node that does not hear the other one tells the first one, which decides. One world remains.
TEST(simulated_cuts, between_two_nodes_lose_the_one_that_is_not_heard) {
  in_schedules([](std::uint64_t seed) {
    std::string said;
    EXPECT_EQ(survivors_of(seed, ",cut=1:2@100us", said), (nodes{0, 2, 3})) << said;
    EXPECT_EQ(count(said, "simulated node 1: node 1 is taken for lost by the first node of the world"), 1) << said;
    EXPECT_EQ(survivors_of(seed, ",cut=2:1@100us", said), (nodes{0, 1, 3})) << said;
    EXPECT_EQ(count(said, "simulated node 2: node 2 is taken for lost by the first node of the world"), 1) << said;
  });
}

TEST(simulated_cuts, between_a_node_and_the_first_one_lose_that_node) {
  in_schedules([](std::uint64_t seed) {
    std::string said;
    EXPECT_EQ(survivors_of(seed, ",cut=0:1@100us", said), (nodes{0, 2, 3})) << said;
    EXPECT_EQ(survivors_of(seed, ",cut=2:0@100us", said), (nodes{0, 1, 3})) << said;
  });
}

// A node of a killed program is missed although the word of its end does not come through.
TEST(simulated_cuts, that_hide_a_lost_node_let_it_be_missed) {
  std::string said =
      said_in(with_cuts(testing::test_seed(), ",lose=2@200us,cut=2:0@100us,cut=2:1@100us,cut=2:3@100us"), [] {
        const auto notes = spawn<Notes>(pe(2));
        EXPECT_THROW(for (;; sleep_for(10us))(void) notes->all(), node_lost);
        EXPECT_EQ(nodes_that_answer(), (nodes{0, 1, 3}));
      });
  EXPECT_EQ(count(said, "orrery: node 2 was silent for 1 ms"), 1) << said;
}

// A world in which everybody waits in vain is said to be dead, with cuts or without.
TEST(simulated_cuts, hide_no_world_that_waits_for_ever) {
  const std::string said = said_in(with_cuts(testing::test_seed(), ",cut=1:2@10us+100us"), [] {
    const auto one = spawn<Partner>(pe(1));
    EXPECT_FALSE(one->talk_to(spawn<Partner>(pe(2)), 500us));
    EXPECT_THROW((void)one->next(), stopped);
  });
  EXPECT_EQ(count(said, "orrery: deadlock: nothing runs and nothing is on its way in the whole world"), 1) << said;
}

TEST(simulated_cuts, are_told_what_cannot_be) {
  EXPECT_EQ(parse_simulation("machines=3,carriers=on,cut=1:2@3us+4us").cuts.front(),
            (transport::sim_settings::cut{1, 2, 3'000, 7'000}));
  EXPECT_EQ(parse_simulation("machines=3,carriers=on,cut=1:2@3us").cuts.front().until_ns,
            transport::sim_settings::cut::for_ever);
  for (const char* wrong :
       {"machines=3,cut=1:2@3us", "machines=3,carriers=on,cut=1:3@3us", "machines=3,carriers=on,cut=1:1@3us",
        "machines=3,carriers=on,cut=1:2", "machines=3,carriers=on,cut=1-2@3us", "machines=3,carriers=on,cut=1:2@3us+x",
        "machines=2,nodes=2,carriers=on,cut=0:1@3us", "machines=2,carriers=on,silence=9us"})
    EXPECT_THROW((void)parse_simulation(wrong), world_error) << wrong;
}

}  // namespace
}  // namespace orrery::simulated_cuts_tests
