// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>
#include <orrery/process/internal/test_world.hpp>
#include <orrery/service/hash_map.hpp>

#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace hash_map_tests {

using orrery::hash_map;
using orrery::testing::in_simulation;
using orrery::testing::in_world;
using map = hash_map<std::string, int>;

// Many requests at a time; those for one key are executed in their order.
void compare_with_map(orrery::consistency order) {
  auto all = map::make();
  std::map<std::string, int> m;
  std::vector<std::pair<bool, std::optional<int>>> expected;
  auto s = all.open({.window = 32, .order = order});
  std::mt19937 random(11);
  const auto check = [&](const auto& r) { EXPECT_EQ(expected[r.request], std::pair(r.done, r.value)) << r.request; };
  for (int i = 0; i < 800; ++i) {
    const std::string k = "key " + std::to_string(random() % 100);
    const auto at = m.find(k);
    const bool there = at != m.end();
    switch (random() % 5) {
      case 0:
        s.start_insert(k, i);
        expected.emplace_back(m.emplace(k, i).second, std::nullopt);
        break;
      case 1:
        s.start_erase(k);
        expected.emplace_back(m.erase(k) == 1, std::nullopt);
        break;
      case 2:
        s.start_update(k, i);
        expected.emplace_back(there, std::nullopt);
        if (there) at->second = i;
        break;
      case 3:
        s.start_insert_or_update(k, i);
        expected.emplace_back(m.insert_or_assign(k, i).second, std::nullopt);
        break;
      default:
        s.start_find(k);
        expected.emplace_back(there, there ? std::optional(at->second) : std::nullopt);
    }
    while (const auto r = s.try_receive()) check(*r);
  }
  while (const auto r = s.receive()) check(*r);
  EXPECT_EQ(all.size(), m.size());
  EXPECT_TRUE(s.insert("another", 5));
  EXPECT_EQ(s.find("another"), 5);
  EXPECT_TRUE(s.erase("another"));
  all.end();
}

TEST(hash_map, refuses_more_replies_than_a_session_may_hold) {
  in_world(1, [] {
    auto m = map::make();
    auto s = m.open({.window = 2, .unfetched = 10});
    int made = 0;
    try {
      for (; made < 100; ++made) s.start_find("key " + std::to_string(made));
    } catch (const orrery::usage_error&) {
    }
    EXPECT_LT(made, 20);
    EXPECT_TRUE(s.insert("a", 1)) << "what takes no room goes on";
    EXPECT_EQ(s.find("a"), 1);
    m.end();
  });
}

TEST(hash_map, gives_the_answers_of_a_map_on_threads) {
  in_world(2, [] { compare_with_map(orrery::consistency::per_key); });
}
TEST(hash_map, gives_the_answers_of_a_map_on_simulated_machines) {
  in_simulation("machines=3,jitter=5us,seed=4", [] { compare_with_map(orrery::consistency::per_key); });
  in_simulation("machines=2,jitter=5us,seed=5", [] { compare_with_map(orrery::consistency::sequential); });
}

TEST(hash_map, loses_the_parts_of_a_lost_node_only) {
  const orrery::testing::leaks_expected of_the_lost_node;
  in_simulation("machines=2,lose=1@1ms,detect=100us", [] {
    auto all = hash_map<int, int>::make();
    auto s = all.open();
    for (int k = 0; k < 64; ++k) EXPECT_TRUE(s.insert(k, k));
    orrery::sleep_for(std::chrono::milliseconds(2));
    for (int k = 0; k < 64; ++k) s.start_find(k);
    int lost = 0;
    int found = 0;
    while (const auto r = s.receive()) {
      found += r->value ? 1 : 0;
      if (r->error != nullptr) ++lost;
    }
    EXPECT_EQ(found + lost, 64);
    EXPECT_GT(found, 0);
    EXPECT_GT(lost, 0);
    EXPECT_EQ(all.size(), static_cast<std::uint64_t>(found));
    all.end();
  });
}

}  // namespace hash_map_tests
