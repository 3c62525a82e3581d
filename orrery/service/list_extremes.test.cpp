// SPDX-License-Identifier: Apache-2.0
// Lists of one item and of many, keys and values of all kinds, clients that never fetch replies.
#include <orrery/process/internal/test_world.hpp>
#include <orrery/service/internal/test_extremes.hpp>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

namespace list_extremes_tests {

using orrery::consistency;
using orrery::testing::in_simulation;
using orrery::testing::in_world;
using orrery::testing::key_orders;

template <class List>
class list_extremes : public ::testing::Test {};
template <template <class, class> class List>
struct kind {
  template <class K, class V>
  using of = List<K, V>;
};
using kinds = ::testing::Types<kind<orrery::ordered_list>, kind<orrery::walking_list>>;
TYPED_TEST_SUITE(list_extremes, kinds);

// On threads, and on simulated machines.
void in_both(void (*body)()) {
  in_world(2, body);
  if (!::testing::Test::HasFailure()) in_simulation("machines=3,jitter=5us,seed=4", body);
}

TYPED_TEST(list_extremes, hold_one_item) {
  in_both([] { EXPECT_EQ((orrery::testing::hold_one_item<typename TypeParam::template of<int, std::string>>()), ""); });
}
TYPED_TEST(list_extremes, take_keys_in_any_order) {
  in_both([] {
    for (const auto order : key_orders)
      for (const auto level : {consistency::per_key, consistency::total})
        EXPECT_EQ((orrery::testing::compare_many<typename TypeParam::template of<int, int>>(order, 200, level)), "");
  });
}
TYPED_TEST(list_extremes, take_strings_with_common_prefixes) {
  in_both([] {
    for (const auto order : key_orders)
      EXPECT_EQ((orrery::testing::compare_many<typename TypeParam::template of<std::string, int>>(
                    order, 200, consistency::per_key)),
                "");
  });
}
TYPED_TEST(list_extremes, hold_values_that_grow_to_a_mebibyte) {
  in_both([] { EXPECT_EQ((orrery::testing::grow_values<typename TypeParam::template of<int, std::string>>()), ""); });
}
TYPED_TEST(list_extremes, erase_under_ranges_that_are_read) {
  in_both([] { EXPECT_EQ((orrery::testing::erase_under_ranges<typename TypeParam::template of<int, int>>(200)), ""); });
}
TYPED_TEST(list_extremes, answer_beside_clients_that_never_fetch) {
  orrery::scheduler::node_settings settings;
  settings.pes = 2;
  settings.pe.mailbox_bytes = 4 << 10;  // a few dozen messages
  in_world(settings, [] {
    EXPECT_EQ((orrery::testing::serve_beside_clients_that_never_fetch<typename TypeParam::template of<int, int>>()),
              "");
  });
  in_simulation("machines=3,jitter=50us,seed=6", [] {
    EXPECT_EQ((orrery::testing::serve_beside_clients_that_never_fetch<typename TypeParam::template of<int, int>>()),
              "");
  });
}

// With ORRERY_TEST_LIST_ITEMS=10000000 it is the size that lists must bear; see
// docs/reference/services.md.
int many() {
  const char* const n = std::getenv("ORRERY_TEST_LIST_ITEMS");
  return n != nullptr ? std::atoi(n) : 30'000;
}

TEST(large_lists, are_ordered_lists) {
  in_world(2, [] {
    auto l = orrery::ordered_list<int, int>::make();
    auto s = l.open({.window = 4096});
    const int n = many();
    for (int i = 0; i < n; ++i) {
      s.start_insert(static_cast<int>(std::int64_t{i} * 7'919'009 % n), i);
      while (const auto r = s.try_receive()) EXPECT_TRUE(r->done);
    }
    while (s.receive()) {
    }
    EXPECT_EQ(s.size(), static_cast<std::uint64_t>(n)) << "each key came once";
    (void)l.balance();
    std::int64_t next = 0;
    auto all = s.stream({}, {}, 4096);
    for (auto part = all.next(); !part.empty(); part = all.next())
      for (const auto& [k, v] : part) EXPECT_EQ(k, next++);
    EXPECT_EQ(next, n);
    EXPECT_EQ(s.last()->first, n - 1);
    EXPECT_EQ(s.after(n / 2)->first, n / 2 + 1);
    l.end();
  });
}
TEST(large_lists, are_walking_lists) {
  in_world(2, [] {
    const int n = many();
    auto l =
        orrery::walking_list<int, int>::make({.processes = 100, .granularity = static_cast<std::uint32_t>(n / 100)});
    {
      std::vector<std::pair<int, int>> items;
      for (int k = 0; k < n; ++k) items.emplace_back(2 * k, k);
      l.fill(items, true);
      auto s = l.open({.window = 64});
      EXPECT_EQ(s.size(), static_cast<std::uint64_t>(n));
      EXPECT_EQ(s.last(), items.back());
      for (int i = 0; i < 1000; ++i) {
        const int k = static_cast<int>(std::int64_t{i} * 7'919'009 % n);
        s.start_find(2 * k);
        s.start_insert(2 * k + 1, 0);
      }
      int done = 0;
      while (const auto r = s.receive()) done += r->done ? 1 : 0;
      EXPECT_EQ(done, 2000);
      EXPECT_GE(s.scan(2 * n - 20, {}, 100).next().size(), 10U);
      EXPECT_EQ(s.size(), static_cast<std::uint64_t>(n) + 1000);
    }
    l.end();
  });
}
// The largest list of the paper has 192,000 processes.
TEST(large_lists, have_one_item_in_each_process) {
  in_world(2, [] {
    const int n = many() >= 1'000'000 ? 192'000 : 6'000;
    auto l = orrery::walking_list<int, int>::make({.processes = static_cast<std::uint32_t>(n / 2), .granularity = 1});
    {
      std::vector<std::pair<int, int>> items;
      for (int k = 0; k < n - 2; ++k) items.emplace_back(2 * k, k);
      l.fill(items, true);
      auto s = l.open({.window = 64});
      for (int i = 0; i < 500; ++i) s.start_find(static_cast<int>(std::int64_t{i} * 7'919'009 % (n - 2)) * 2);
      int found = 0;
      while (const auto r = s.receive()) found += r->done ? 1 : 0;
      EXPECT_EQ(found, 500);
      EXPECT_TRUE(s.insert(n + 1, 1));
      EXPECT_TRUE(s.insert(2 * n - 1, 2));
      EXPECT_THROW((void)s.insert(n + 3, 3), orrery::usage_error) << "it is full";
      EXPECT_TRUE(s.erase(n + 1));
      EXPECT_TRUE(s.insert(n + 3, 3));
      EXPECT_EQ(s.find(n + 3), 3);
      EXPECT_EQ(s.find(2 * n - 1), 2);
    }
    EXPECT_EQ(l.estimated_size(), static_cast<std::uint64_t>(n));
    EXPECT_EQ(l.free_processes(), 0U);
    l.end();
  });
}
// A list of the paper's kind, and one that finds its keys by a directory.
TEST(large_lists, of_both_kinds_give_the_same_answers) {
  in_world(2, [] {
    const int n = std::min(many(), 1 << 20);
    auto walking = orrery::walking_list<int, int>::make(
        {.processes = 12, .granularity = static_cast<std::uint32_t>(n / 16), .forwards = 8});
    auto ordered = orrery::ordered_list<int, int>::make({.range_items = static_cast<std::uint32_t>(n / 8)});
    {
      std::vector<std::pair<int, int>> items;
      for (int k = 0; k < n; ++k) items.emplace_back(2 * k, k);
      walking.fill(items);
      auto a = walking.open();
      auto b = ordered.open({.window = 1024});
      for (const auto& [k, v] : items) {
        b.start_insert(k, v);
        while (b.try_receive()) {
        }
      }
      while (b.receive()) {
      }
      std::mt19937 random(1);
      for (int i = 0; i < 500; ++i) {
        const int k = static_cast<int>(random() % static_cast<unsigned>(2 * n));
        EXPECT_EQ(a.find(k), b.find(k));
        EXPECT_EQ(a.insert(k, i), b.insert(k, i));
        EXPECT_EQ(a.after(k), b.after(k));
        EXPECT_EQ(a.erase(k / 2), b.erase(k / 2));
        EXPECT_EQ(a.insert_or_update(k + 1, i), b.insert_or_update(k + 1, i));
        EXPECT_EQ(a.compare_and_update(k, i, i + 1), b.compare_and_update(k, i, i + 1));
        if (i % 50 == 0) {
          EXPECT_EQ(a.snapshot(k, k + 200), b.snapshot(k, k + 200));
        }
      }
      EXPECT_EQ(a.size(), b.size());
      EXPECT_EQ(a.first(), b.first());
      EXPECT_EQ(a.last(), b.last());
      EXPECT_EQ(a.snapshot(), b.snapshot());
    }
    walking.end();
    ordered.end();
  });
}

void keep_a_stream(orrery::ordered_list<int, int> l) {
  auto s = l.open();
  const auto items = s.stream();
  orrery::sleep_for(std::chrono::hours(1));
}
TEST(list_streams, on_the_stack_of_a_method_end_with_the_program) {
  const auto body = [] {
    const auto l = orrery::ordered_list<int, int>::make();
    l.open().insert(1, 1);
    for (std::uint32_t p = 0; p < orrery::world_pes(); ++p) post_call<&keep_a_stream>(orrery::pe(p), l);
    orrery::sleep_for(std::chrono::milliseconds(1));
  };
  in_world(2, body);
  in_simulation("machines=3,jitter=5us", body);
}

TEST(ordered_list, splits_until_no_range_has_more_items_than_its_limit) {
  in_simulation("machines=2", [] {
    auto l = orrery::ordered_list<int, int>::make({.range_items = 64, .balancing = false});
    {
      auto s = l.open({.window = 4096});
      // In few batches, larger than two ranges.
      for (int k = 0; k < 2000; ++k) s.start_insert(k, k);
    }
    orrery::sleep_for(std::chrono::milliseconds(2));
    for (const auto& r : l.statistics()) EXPECT_LE(r.items, 64U);
    EXPECT_TRUE(l.lost().empty());
    EXPECT_EQ(l.open().snapshot().size(), 2000U);
    l.end();
  });
}

}  // namespace list_extremes_tests
