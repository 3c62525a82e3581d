// SPDX-License-Identifier: Apache-2.0
#include <orrery/service/sorted_leaves.hpp>

#include <map>
#include <random>

#include <gtest/gtest.h>

namespace sorted_leaves_tests {

using leaves = orrery::service::sorted_leaves<std::uint32_t, bool>;
using model = std::map<std::uint32_t, bool>;

void expect_same(const leaves& l, const model& m) {
  ASSERT_EQ(l.size(), m.size());
  auto p = l.begin();
  for (const auto& [k, v] : m) {
    ASSERT_FALSE(l.is_end(p));
    ASSERT_EQ(l.key(p), k);
    ASSERT_EQ(l.value(p), v);
    p = l.next(p);
  }
  ASSERT_TRUE(l.is_end(p));
  if (!m.empty()) {
    EXPECT_EQ(l.key(l.last()), m.rbegin()->first);
  }
}

TEST(sorted_leaves, do_what_a_map_does) {
  leaves l;
  model m;
  std::mt19937 random(3);
  for (int round = 0; round < 6; ++round) {
    const unsigned erasing = round % 2 == 0 ? 1 : 3;  // of 4: it grows and shrinks
    for (int i = 0; i < 3000; ++i) {
      const auto k = static_cast<std::uint32_t>(random() % 4000);
      if (random() % 4 < erasing) {
        ASSERT_EQ(l.erase_in(l.find_leaf(k), k), m.erase(k) == 1);
      } else {
        ASSERT_EQ(l.insert_in(l.find_leaf(k), std::uint32_t{k}, i % 2 == 0), m.emplace(k, i % 2 == 0).second);
      }
      const auto q = static_cast<std::uint32_t>(random() % 4000);
      const bool* found = l.find_in(l.find_leaf(q), q);
      ASSERT_EQ(found != nullptr, m.contains(q));
      const auto p = l.lower_bound(q, true);
      const auto after = m.upper_bound(q);
      ASSERT_EQ(l.is_end(p), after == m.end());
      if (after != m.end()) {
        ASSERT_EQ(l.key(p), after->first);
      }
    }
    expect_same(l, m);
  }
  for (const auto& [k, v] : model(m)) {
    ASSERT_TRUE(l.erase_in(l.find_leaf(k), k));
    m.erase(k);
  }
  expect_same(l, m);
}

TEST(sorted_leaves, fill_up_with_ascending_keys) {
  leaves l;
  for (std::uint32_t k = 0; k < 64 * 64; ++k) l.append(std::uint32_t{k}, true);
  EXPECT_LT(l.bytes(), 64 * 64 * (sizeof(std::uint32_t) + sizeof(bool)) * 5 / 4 + 64 * 128);
}

TEST(sorted_leaves, give_their_upper_half_away) {
  for (const std::uint32_t n : {2U, 3U, 64U, 65U, 1000U}) {
    leaves l;
    model m;
    for (std::uint32_t k = 0; k < n; ++k) {
      l.append(2 * k, true);
      m.emplace(2 * k, true);
    }
    const std::uint32_t middle = l.middle();
    l.drop_upper_half();
    m.erase(m.lower_bound(middle), m.end());
    EXPECT_GT(m.size(), 0U);
    EXPECT_LT(m.size(), n);
    expect_same(l, m);
  }
}

TEST(sorted_leaves, keep_what_is_pinned) {
  leaves l;
  model m;
  std::mt19937 random(5);
  for (int round = 0; round < 20; ++round) {
    const auto from = static_cast<std::uint32_t>(random() % 1000);
    const auto to = from + static_cast<std::uint32_t>(random() % 1000);
    auto pinned = l.pin(l.lower_bound(from), to);
    const model then(m.lower_bound(from), m.lower_bound(to));
    model read;
    bool more = true;
    for (int i = 0; i < 500; ++i) {
      const auto k = static_cast<std::uint32_t>(random() % 2000);
      if (random() % 2 == 0) {
        l.erase_in(l.find_leaf(k), k);
        m.erase(k);
      } else if (bool* const v = l.change_in(l.find_leaf(k), k)) {
        *v = m[k] = i % 3 == 0;
      } else {
        ASSERT_TRUE(l.insert_in(l.find_leaf(k), std::uint32_t{k}, i % 2 == 0));
        m.emplace(k, i % 2 == 0);
      }
      if (more && i % 50 == 0) more = pinned.take(3, [&](std::uint32_t k, bool v) { return read.emplace(k, v), true; });
    }
    while (more) more = pinned.take(100, [&](std::uint32_t k, bool v) { return read.emplace(k, v), true; });
    ASSERT_EQ(read, then);
    expect_same(l, m);
  }
}

}  // namespace sorted_leaves_tests
