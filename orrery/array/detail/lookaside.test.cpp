// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/detail/lookaside.hpp>

#include <orrery/transport/internal/test_seed.hpp>

#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace orrery::detail {
namespace lookaside_tests {

struct fake_process {};
template <class Index>
using lookaside_of = lookaside<Index, fake_process>;

TEST(lookaside, has_none_for_few_elements) {
  lookaside_of<int> l;
  fake_process p;
  l.note(7, p, lookaside_of<int>::fewest - 1);
  EXPECT_EQ(l.size(), 0U);
  EXPECT_EQ(l.find(7), nullptr);
  l.forget(7, p);
}

TEST(lookaside, has_none_for_words) {
  lookaside_of<std::string> l;
  fake_process p;
  l.note("word", p, 1000);
  EXPECT_EQ(l.find("word"), nullptr);
  EXPECT_EQ(l.size(), 0U);
}

// A look-up never finds another element, nor one that was forgotten, whatever shares an entry with
// what.
TEST(lookaside, agrees_with_the_table) {
  const std::uint64_t seed = testing::test_seed();
  SCOPED_TRACE("ORRERY_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 20; ++round) {
    using at = index<3>;
    lookaside_of<at> l;
    std::map<at, std::unique_ptr<fake_process>> table;
    const int width = 1 + static_cast<int>(random() % 12);
    const int far = random() % 2 == 0 ? 1 : 1 << 20;
    for (int n = 0; n < 20'000; ++n) {
      const auto x = [&] { return far * (static_cast<int>(random() % static_cast<unsigned>(width)) - width / 2); };
      const at i{x(), x(), x()};
      const auto it = table.find(i);
      switch (random() % 4) {
        case 0:
          if (it == table.end()) table.emplace(i, new fake_process);
          break;
        case 1:
          if (it != table.end()) {
            l.forget(i, *it->second);
            table.erase(it);
          }
          break;
        default:
          if (const fake_process* p = l.find(i)) {
            ASSERT_TRUE(it != table.end());
            ASSERT_EQ(p, it->second.get());
          } else if (it != table.end()) {
            l.note(i, *it->second, table.size());
            ASSERT_EQ(l.find(i), l.size() != 0 ? it->second.get() : nullptr);
          }
      }
    }
    ASSERT_LE(l.size(), std::bit_ceil(2 * static_cast<std::size_t>(width * width * width)));
  }
}

// Its purpose: a dense block of elements has nearly all of its entries for itself.
TEST(lookaside, holds_a_dense_block) {
  for (const auto& [rows, columns] : {std::pair{32, 64}, {64, 32}, {7, 9}, {100, 3}, {3, 100}, {1, 500}, {500, 1}}) {
    SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(columns));
    lookaside_of<index<2>> l;
    std::vector<fake_process> all(static_cast<std::size_t>(rows * columns));
    const auto at = [&](std::size_t n) {
      const int number = static_cast<int>(n);
      return index<2>{1000 + number / columns, 77 + number % columns};
    };
    for (std::size_t n = 0; n < all.size(); ++n) l.note(at(n), all[n], all.size());
    std::size_t found = 0;
    for (std::size_t n = 0; n < all.size(); ++n) found += l.find(at(n)) == &all[n] ? 1 : 0;
    EXPECT_GE(found, all.size() * 95 / 100);
  }
}

TEST(lookaside, is_no_larger_than_the_caches) {
  lookaside_of<std::int64_t> l;
  fake_process p;
  l.note(1 << 30, p, 10'000'000);
  EXPECT_EQ(l.size(), lookaside_of<std::int64_t>::most);
  EXPECT_EQ(l.find(1 << 30), &p);
  EXPECT_EQ(l.find((1 << 30) + 1), nullptr);
}

}  // namespace lookaside_tests
}  // namespace orrery::detail
