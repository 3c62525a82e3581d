// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/jump_prefetcher.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

using orrery::scheduler::jump_prefetcher;
using orrery::scheduler::slot;

namespace jump_prefetcher_tests {

// A random order in which all of `count` processes run once.
std::vector<std::uint32_t> random_order(std::uint32_t count, unsigned seed) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  std::shuffle(order.begin(), order.end(), std::mt19937{seed});
  return order;
}

TEST(jump_prefetcher, is_not_active_until_it_is_told) {
  const jump_prefetcher p;
  EXPECT_FALSE(p.active());
}

TEST(jump_prefetcher, after_one_round_knows_who_runs_soon) {
  const auto order = random_order(1000, 7);
  const std::vector<slot> slots(order.size());
  jump_prefetcher p;
  p.activate(order.size());
  ASSERT_TRUE(p.active());
  for (int round = 0; round < 2; ++round)
    for (const std::uint32_t i : order) p.runs(i, slots.data());
  for (std::size_t i = 0; i < order.size(); ++i)
    EXPECT_EQ(p.expected_after(order[i]), order[(i + jump_prefetcher::distance) % order.size()]);
}

TEST(jump_prefetcher, follows_when_the_order_changes) {
  const std::vector<slot> slots(500);
  jump_prefetcher p;
  p.activate(slots.size());
  for (const unsigned seed : {1U, 2U}) {
    const auto order = random_order(500, seed);
    for (int round = 0; round < 2; ++round)
      for (const std::uint32_t i : order) p.runs(i, slots.data());
    EXPECT_EQ(p.expected_after(order[0]), order[jump_prefetcher::distance]);
  }
}

TEST(jump_prefetcher, a_world_of_few_processes_guesses_only_those_that_exist) {
  const std::vector<slot> slots(3);
  jump_prefetcher p;
  p.activate(slots.size());
  for (std::uint32_t i = 0; i < 100; ++i) p.runs(i % 3, slots.data());
  for (std::uint32_t i = 0; i < 3; ++i) EXPECT_LT(p.expected_after(i), 3U);
}

}  // namespace jump_prefetcher_tests
