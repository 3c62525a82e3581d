// SPDX-License-Identifier: Apache-2.0
// Ordered lists that lose a node while their ranges split, join and move, in simulated worlds of
// many schedules.
#include <orrery/orrery.hpp>
#include <orrery/process/internal/test_world.hpp>
#include <orrery/scheduler/sanitizers.hpp>
#include <orrery/service/ordered_list.hpp>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace list_loss_tests {

using list = orrery::ordered_list<int, int>;
constexpr int keys = 60;

// Keeps the ranges moving until a part of the list is lost.
int move_ranges(const list& l) {
  std::mt19937 random(3);
  for (int i = 0; i < 60; ++i) {
    try {
      l.tune(static_cast<std::uint32_t>(2 + random() % 12));
      (void)l.balance();
    } catch (const orrery::node_lost&) {
      break;
    }
    orrery::sleep_for(std::chrono::microseconds(random() % 20));
  }
  return 0;
}

// Inserts and erases; says of each key what was acknowledged last, and of those whose last request
// failed nothing.
std::map<int, std::optional<int>> use(const list& l, std::uint32_t seed) {
  std::map<int, std::optional<int>> known;
  std::mt19937 random(seed);
  auto s = l.open({.window = 1});
  for (int i = 0; i < 200; ++i) {
    const int k = static_cast<int>(random() % keys);
    try {
      if (random() % 3 == 0) {
        (void)s.erase(k);
        known[k] = std::nullopt;
      } else {
        (void)s.insert_or_update(k, i);
        known[k] = i;
      }
    } catch (const orrery::node_lost&) {
      known.erase(k);
    }
  }
  return known;
}

TEST(list_loss, of_a_node_loses_exactly_the_keys_that_the_list_says) {
  const orrery::testing::leaks_expected of_the_lost_node;
  int some = 0;
  constexpr std::uint32_t seeds = orrery::scheduler::slowed_down ? 30 : 100;
  for (std::uint32_t seed = 1; seed <= seeds; ++seed) {
    const std::string world =
        fmt::format("machines=3,lose={}@{}us,detect=40us,jitter=8us,seed={}", 1 + seed % 2, 200 + 14 * seed, seed);
    orrery::testing::in_simulation(world, [&] {
      auto l = list::make({.range_items = 4, .splits = {20, 40}});
      auto moves = orrery::start_call<&move_ranges>(orrery::pe(0), l);
      const auto known = use(l, seed);
      moves.get();
      orrery::sleep_for(std::chrono::milliseconds(3));  // it is lost now
      const auto lost = l.lost();
      auto s = l.open();
      for (int k = 0; k < keys; ++k) {
        const bool is_lost = std::ranges::any_of(lost, [&](const auto& b) { return b.contains(k); });
        if (is_lost) {
          EXPECT_THROW((void)s.find(k), orrery::node_lost) << k;
        } else if (known.contains(k)) {
          EXPECT_EQ(s.find(k), known.at(k)) << k << " seed " << seed;
        } else {
          EXPECT_NO_THROW((void)s.find(k)) << k;
        }
      }
      for (std::size_t i = 1; i < lost.size(); ++i) EXPECT_LT(*lost[i - 1].to, *lost[i].from);
      if (!lost.empty()) ++some;
      l.end();
    });
    if (HasFailure()) break;
  }
  EXPECT_GT(some, static_cast<int>(seeds / 2));
}

TEST(list_loss, of_nothing_is_said_when_all_nodes_are_there) {
  orrery::testing::in_world(2, [] {
    auto l = list::make({.splits = {20, 40}});
    EXPECT_TRUE(l.lost().empty());
    l.end();
  });
}

}  // namespace list_loss_tests
