// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>
#include <orrery/process/internal/test_world.hpp>
#include <orrery/service/hash_map.hpp>
#include <orrery/service/ordered_list.hpp>
#include <orrery/service/walking_list.hpp>
#include <orrery/service/work_queue.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <new>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace throwing_tests {

using orrery::consistency;
using orrery::ordered_list;
using orrery::testing::in_simulation;
using orrery::testing::in_world;

// Ordered by `<` only, which throws for one key.
struct strict_key {
  int x = 0;
  bool operator<(const strict_key& o) const {
    if (x == 666 || o.x == 666) throw std::out_of_range("cannot be compared");
    return x < o.x;
  }
  bool operator==(const strict_key& o) const { return !(*this < o) && !(o < *this); }
};
}  // namespace throwing_tests

template <>
struct std::hash<throwing_tests::strict_key> {
  std::size_t operator()(const throwing_tests::strict_key& k) const {
    if (k.x == 666) throw std::out_of_range("has no hash");
    return static_cast<std::size_t>(k.x);
  }
};

namespace throwing_tests {

// It cannot be read where it arrives, if it has this number.
std::atomic<int> unreadable_number = 666;
struct brittle {
  int x = 0;
  template <class A>
  void serialize(A& a) {
    a & x;
    if (std::is_same_v<A, orrery::reader> && x == unreadable_number) throw std::domain_error("cannot be read");
  }
};

// It has no moves, and copies of it fail while the test says so.
struct costly {
  costly() = default;
  explicit costly(int n) : x(n) {}
  costly(const costly& o) : x(o.x) { spend(); }
  costly& operator=(const costly& o) {
    spend();
    x = o.x;
    return *this;
  }
  bool operator<(const costly& o) const { return x < o.x; }
  static void spend() {
    if (left != 0 && --left == 0) throw std::bad_alloc();
  }
  template <class A>
  void serialize(A& a) {
    a & x;
  }
  int x = 0;
  static int left;  // copies until one fails; 0: none does
};
int costly::left = 0;

template <class Session, class Error>
void expect_failure_between(Session& s) {
  s.start_insert({1}, 1);
  const auto bad = [&] {
    try {
      return std::pair(s.start_insert({666}, 2), true);
    } catch (const Error&) {  // at the caller
      return std::pair(std::uint64_t{0}, false);
    }
  }();
  s.start_insert({3}, 3);
  int done = 0;
  int failed = 0;
  while (const auto r = s.receive()) {
    if (bad.second && r->request == bad.first) {
      EXPECT_THROW(r->check(), Error);
      ++failed;
    } else {
      r->check();
      done += r->done ? 1 : 0;
    }
  }
  EXPECT_EQ(done, 2);
  EXPECT_EQ(failed, bad.second ? 1 : 0);
  EXPECT_EQ(s.size(), 2U);
  EXPECT_EQ(s.find({3}), 3);
}

TEST(throwing_keys, a_comparison_that_throws_fails_its_request_alone) {
  for (const consistency order :
       {consistency::unordered, consistency::per_key, consistency::sequential, consistency::total})
    for (const std::size_t splits : {0U, 1U})
      in_world(2, [=] {
        auto l = splits == 0 ? ordered_list<strict_key, int>::make()
                             : ordered_list<strict_key, int>::make({.splits = {{2}}});
        {
          auto s = l.open({.window = 8, .order = order});
          expect_failure_between<decltype(s), std::out_of_range>(s);
          EXPECT_THROW((void)s.find({666}), std::out_of_range);
          EXPECT_THROW((void)s.snapshot({{666}}), std::out_of_range);
          EXPECT_THROW((void)s.after({666}), std::out_of_range);
        }
        l.end();
      });
}

TEST(throwing_keys, a_hash_that_throws_fails_its_request_alone) {
  in_world(2, [] {
    auto m = orrery::hash_map<strict_key, int>::make();
    auto s = m.open({.window = 8});
    for (const int k : {1, 666, 3}) s.start_insert({k}, k);
    int done = 0;
    while (const auto r = s.receive()) {
      if (r->request == 1) {
        EXPECT_THROW(r->check(), std::out_of_range);
      } else {
        done += r->done ? 1 : 0;
      }
    }
    EXPECT_EQ(done, 2);
    EXPECT_EQ(s.find({3}), 3);
  });
}

TEST(throwing_keys, requests_that_walk_fail_by_a_comparison) {
  for (const consistency order :
       {consistency::unordered, consistency::per_key, consistency::sequential, consistency::total})
    in_world(2, [=] {
      auto l = orrery::walking_list<strict_key, int>::make({.processes = 20, .granularity = 2});
      {
        auto s = l.open({.window = 1, .order = order});
        for (int k = 0; k < 10; ++k) EXPECT_TRUE(s.insert({k}, k));
        EXPECT_THROW((void)s.insert({666}, 1), std::out_of_range);
        EXPECT_THROW((void)s.find({666}), std::out_of_range);
        EXPECT_EQ(s.size(), 10U);
        EXPECT_EQ(s.find({9}), 9);
        EXPECT_TRUE(s.erase({4}));
      }
      {
        // some of the others may fail with it, none is forgotten
        auto s = l.open({.window = 8, .order = order});
        for (const int k : {20, 666, 21}) s.start_insert({k}, k);
        int failed = 0;
        while (const auto r = s.receive()) failed += r->error == nullptr ? 0 : 1;
        EXPECT_GE(failed, 1);
        EXPECT_EQ(s.find({9}), 9);
      }
      l.end();
    });
}

// Small mailboxes: a batch waits in a send, with others behind it, when a comparison of it throws.
TEST(throwing_keys, requests_that_walk_go_on_behind_batches_that_failed) {
  for (const consistency order : {consistency::per_key, consistency::sequential})
    for (std::uint32_t seed = 1; seed <= 20; ++seed) {
      orrery::scheduler::node_settings settings;
      settings.pe.mailbox_bytes = 4 << 10;  // a few dozen messages
      const auto world = orrery::parse_simulation(fmt::format("machines=2,jitter=20us,seed={}", seed));
      in_simulation(world, settings, [=] {
        auto l = orrery::walking_list<strict_key, int>::make({.processes = 20, .granularity = 2});
        {
          auto s = l.open({.window = 256, .order = order});
          for (int k = 0; k < 20; ++k) s.insert({k}, k);
          int made = 0;
          int replies = 0;
          for (int round = 0; round < 4; ++round) {
            for (int i = 0; i < 250; ++i, ++made) s.start_find({i == 110 ? 666 : i});
            while (s.receive()) ++replies;
          }
          EXPECT_EQ(replies, made);
          for (int k = 0; k < 250; ++k) EXPECT_EQ(s.find({k}), k < 20 ? std::optional(k) : std::nullopt) << seed;
        }
        l.end();
      });
      if (::testing::Test::HasFailure()) return;
    }
}

TEST(throwing_keys, ranges_split_after_a_comparison_that_threw) {
  in_simulation("machines=3,seed=5", [] {
    auto l = ordered_list<strict_key, int>::make({.range_items = 8});
    auto s = l.open({.window = 16});
    for (int k = 0; k < 400; ++k) {
      s.start_insert({k % 2 == 0 ? k : 1000 - k}, k);
      if (k % 40 != 0) continue;
      try {
        s.start_find({666});
      } catch (const std::out_of_range&) {
      }
    }
    int good = 0;
    while (const auto r = s.receive()) good += r->error == nullptr && r->done ? 1 : 0;
    EXPECT_EQ(good, 400);
    EXPECT_EQ(s.size(), 400U);
  });
}

// The session knows one range, and compares no key, until the answer to its first request.
int fail_by_thousands(const ordered_list<strict_key, int>& l) {
  auto s = l.open({.window = 20'000, .order = consistency::sequential});
  {
    auto other = l.open();
    for (int k = 0; k < 100; ++k) other.insert({k}, k);
  }
  s.start_insert({1000}, 1);
  s.flush();
  for (int i = 0; i < 5000; ++i) s.start_find({666});
  int failed = 0;
  while (const auto r = s.receive()) {
    if (r->request == 0) {
      EXPECT_TRUE(r->done);
    } else {
      EXPECT_THROW(r->check(), std::out_of_range);
      ++failed;
    }
  }
  EXPECT_EQ(s.find({1000}), 1);
  return failed;
}
TEST(throwing_keys, thousands_of_requests_in_sequence_fail_on_a_small_stack) {
  in_world(1, [] {
    auto l = ordered_list<strict_key, int>::make({.range_items = 8});
    EXPECT_EQ(orrery::call<&fail_by_thousands>(orrery::pe(0), l), 5000);
    l.end();
  });
}

TEST(throwing_values, what_cannot_be_read_fails_its_request_alone) {
  for (const consistency order : {consistency::per_key, consistency::sequential, consistency::total})
    in_world(2, [=] {
      auto l = ordered_list<int, brittle>::make({.splits = {2}});
      auto s = l.open({.window = 8, .order = order});
      const int values[] = {5, 666, 7, 666, 9};
      for (int k = 0; k < 5; ++k) s.start_insert(k, {values[k]});
      int failed = 0;
      while (const auto r = s.receive()) {
        if (r->error == nullptr) continue;
        ++failed;
        EXPECT_EQ(r->request % 2, 1U);
        EXPECT_THROW(r->check(), std::domain_error);
      }
      EXPECT_EQ(failed, 2);
      EXPECT_EQ(s.size(), 3U);
      EXPECT_EQ(s.find(4)->x, 9);
    });
}

template <class List>
std::uint64_t joins_of(const List& l) {
  std::uint64_t n = 0;
  for (const auto& r : l.statistics()) n += r.merges;
  return n;
}
// The last range has all to do, so that those before it are to be one.
template <class List>
void balance_for_the_last(List& l) {
  {
    auto s = l.open();
    for (int i = 0; i < 20'000; ++i) {
      s.start_find(200 + i % 20);
      while (s.try_receive()) {
      }
    }
    while (s.receive()) {
    }
  }
  (void)l.balance();
}

TEST(throwing_values, a_join_that_fails_leaves_all_items_where_they_were) {
  in_world(2, [] {
    auto l = ordered_list<int, brittle>::make({.pes = {0, 1}, .splits = {100, 200}, .balancing = false});
    auto s = l.open();
    std::vector<int> keys{1};
    for (const int from : {100, 200})
      for (int k = 0; k < 20; ++k) keys.push_back(from + k);
    for (const int k : keys) (void)s.insert(k, {k});
    (void)l.balance();  // what was done until now does not count
    const auto expect_all = [&](auto& session) {
      for (const int k : keys) EXPECT_EQ(session.find(k).value_or(brittle{-1}).x, k);
      EXPECT_EQ(session.size(), keys.size());
      EXPECT_EQ(session.snapshot().size(), keys.size());
    };
    for (int times = 0; times < 3; ++times) {
      unreadable_number = 110;
      balance_for_the_last(l);
      unreadable_number = 666;
      EXPECT_EQ(joins_of(l), 0U);
      expect_all(s);
      auto fresh = l.open();
      expect_all(fresh);
    }
    balance_for_the_last(l);
    EXPECT_GT(joins_of(l), 0U) << "else nothing was to be joined";
    expect_all(s);
  });
}

// How many items parts of the walk had until it failed, which it does each time from then on.
template <class Walk>
std::size_t items_before_failure(Walk walk) {
  std::size_t n = 0;
  for (;;) {
    try {
      const auto part = walk.next();
      if (part.empty()) return 0;  // it has not failed
      for (const auto& [k, v] : part) EXPECT_EQ(v.x, k);
      n += part.size();
    } catch (const std::domain_error&) {
      EXPECT_THROW((void)walk.next(), std::domain_error);
      return n;
    }
  }
}

// The item with the number `bad`, one in 20, cannot pass.
template <class List, class Number, class More>
void expect_walks_stop_at_each(List& l, Number& bad, More more) {
  for (const int n : {0, 1, 7, 19})
    for (const std::uint32_t part : {1U, 8U, 100U}) {
      bad = n;
      auto s = l.open();
      EXPECT_EQ(items_before_failure(s.scan({}, {}, part)), static_cast<std::size_t>(n));
      EXPECT_EQ(items_before_failure(s.stream({}, {}, part)), static_cast<std::size_t>(n));
      more(s, n);
      bad = 666;
      EXPECT_EQ(s.snapshot().size(), 20U) << "the session is usable";
    }
}

// The ranges have the value as it was made; who reads it cannot.
TEST(throwing_values, walks_give_what_is_before_one_that_cannot_be_read) {
  in_world(1, [] {
    auto l = ordered_list<int, brittle>::make();
    {
      auto s = l.open();
      for (int k = 0; k < 20; ++k) s.insert(k, {k});
    }
    expect_walks_stop_at_each(l, unreadable_number, [](auto& s, int bad) {
      EXPECT_THROW((void)s.snapshot(), std::domain_error);
      EXPECT_THROW((void)s.find(bad), std::domain_error);
    });
  });
}

// The reader could read them; a range cannot write one of them.
int unwritable_number = 666;
struct reluctant {
  int x = -1;  // a default one is written to learn its shape
  template <class A>
  void serialize(A& a) {
    if (!std::is_same_v<A, orrery::reader> && x == unwritable_number) throw std::domain_error("cannot be written");
    a & x;
  }
};
TEST(throwing_values, walks_give_what_is_before_one_that_cannot_be_written) {
  in_world(1, [] {
    for (const std::uint32_t range_items : {8U, 1000U}) {
      auto l = ordered_list<int, reluctant>::make({.range_items = range_items});
      {
        auto s = l.open();
        for (int k = 0; k < 20; ++k) s.insert(k, {k});
      }
      expect_walks_stop_at_each(l, unwritable_number, [](auto&, int) {});
      l.end();
    }
  });
}

using jobs = orrery::work_queue<brittle>;

TEST(throwing_values, an_item_of_a_queue_that_cannot_be_read_costs_no_other) {
  in_world(2, [] {
    auto q = jobs::make(orrery::pe(1));
    auto s = q.open();
    for (int i = 0; i < 5; ++i) s.put(0, {i});
    unreadable_number = 2;
    auto got = s.take_some(5);
    ASSERT_EQ(got.size(), 2U);
    EXPECT_EQ(got[1].item.x, 1);
    EXPECT_THROW((void)s.take(), std::domain_error);
    ASSERT_EQ(s.unreadable().size(), 1U);
    EXPECT_EQ(s.unreadable()[0].id, 2U);
    const auto next = s.try_take();
    ASSERT_TRUE(next);
    EXPECT_EQ(next->item.x, 3);
    const auto last = s.take_for(std::chrono::hours(1));
    ASSERT_TRUE(last);
    EXPECT_EQ(last->item.x, 4);
    EXPECT_FALSE(s.try_take());
    EXPECT_EQ(q.counts(), (orrery::service::work_counts{0, 5, 0, 0}));
    unreadable_number = 666;
    EXPECT_TRUE(s.give_back(s.unreadable()[0]));
    EXPECT_TRUE(s.unreadable().empty());
    const auto again = s.take();
    ASSERT_TRUE(again);
    EXPECT_EQ(again->item.x, 2);
    EXPECT_EQ(again->times, 2U);
    for (const auto& w : {got[0], got[1], *next, *last, *again}) EXPECT_TRUE(s.done(w));
    EXPECT_EQ(q.counts(), (orrery::service::work_counts{0, 0, 5, 1}));
    unreadable_number = 9;
    s.put(0, {9});
    EXPECT_THROW((void)s.take_some(3), std::domain_error);
    EXPECT_TRUE(s.done(s.unreadable()[0]));
    q.close();
    EXPECT_FALSE(s.take());
  });
}

TEST(throwing_values, an_item_that_cannot_be_read_is_named_until_the_queue_is_told_of_it) {
  in_world(1, [] {
    auto q = jobs::make();
    auto s = q.open({.window = 2, .unfetched = 5});
    s.put(0, {9});
    unreadable_number = 9;
    EXPECT_THROW((void)s.take(), std::domain_error);
    unreadable_number = 666;
    int made = 0;
    try {
      for (; made < 100; ++made) s.start_put(0, {made});
    } catch (const orrery::usage_error&) {
    }
    EXPECT_LT(made, 20);
    ASSERT_EQ(s.unreadable().size(), 1U);
    const auto item = s.unreadable()[0];
    EXPECT_THROW((void)s.start_done(item), orrery::usage_error);
    EXPECT_THROW((void)s.start_give_back(item, 0), orrery::usage_error);
    EXPECT_EQ(s.unreadable().size(), 1U) << "the queue has not heard of it";
    EXPECT_TRUE(s.put(1, {1}));
    EXPECT_TRUE(s.done(item)) << "what takes no room goes on";
    EXPECT_TRUE(s.unreadable().empty());
    EXPECT_EQ(q.counts().done, 1U);
  });
}

TEST(throwing_values, a_copy_that_fails_leaves_all_other_items) {
  in_world(1, [] {
    for (int at = 1; at < 400; ++at) {
      orrery::service::sorted_leaves<int, costly> items;
      const auto insert = [&](int k) { return items.insert_in(items.find_leaf(k), int{k}, costly(k)); };
      for (int k = 0; k < 200; k += 2) insert(k);
      costly::left = at;
      std::vector<int> there;
      for (int k = 1; k < 200 && costly::left != 0; k += 2) {
        try {
          if (k % 3 != 0) insert(k);
          if (k % 3 == 0) (void)items.erase_in(items.find_leaf(k - 1), k - 1);
        } catch (const std::bad_alloc&) {
        }
      }
      costly::left = 0;
      std::size_t n = 0;
      int before = -1;
      for (auto p = items.begin(); !items.is_end(p); p = items.next(p), ++n) {
        ASSERT_LT(before, items.key(p)) << at;
        before = items.key(p);
        ASSERT_EQ(items.value(p).x, before) << at;
      }
      ASSERT_EQ(n, items.size());
      for (int k = 0; k < 200; k += 2)
        if ((k + 1) % 3 != 0) {
          ASSERT_NE(items.find_in(items.find_leaf(k), k), nullptr) << at << " " << k;
        }
    }
  });
}

using costly_leaves = orrery::service::sorted_leaves<costly, costly>;

void change(costly_leaves& of, int k, bool insert) {
  const costly key(k);
  const std::size_t leaf = of.find_leaf(key);
  if (insert) {
    (void)of.insert_in(leaf, costly(k), costly(k));
  } else {
    (void)of.erase_in(leaf, key);
  }
}
std::vector<int> keys_in(const costly_leaves& of) {
  std::vector<int> keys;
  for (auto p = of.begin(); !of.is_end(p); p = of.next(p)) {
    keys.push_back(of.key(p).x);
    EXPECT_EQ(of.value(p).x, keys.back());
    EXPECT_NE(of.find_in(of.find_leaf(of.key(p)), of.key(p)), nullptr) << keys.back();
  }
  EXPECT_EQ(of.size(), keys.size());
  return keys;
}
// Inserts or erases the key, and lets the first copy fail, the second one, and so on: all other
// items are there then. Returns how many there are.
int fail_at_each_copy(const costly_leaves& before, int k, bool insert) {
  auto others = keys_in(before);
  std::erase(others, k);
  for (int at = 1;; ++at) {
    costly_leaves items = before;
    costly::left = at;
    bool failed = false;
    try {
      change(items, k, insert);
    } catch (const std::bad_alloc&) {
      failed = true;
    }
    costly::left = 0;
    auto left = keys_in(items);
    const bool there = std::erase(left, k) != 0;
    EXPECT_EQ(left, others) << at;
    if (!failed) {
      EXPECT_EQ(there, insert);
    }
    change(items, k, true);
    EXPECT_EQ(keys_in(items).size(), others.size() + 1) << at;
    if (!failed || ::testing::Test::HasFailure()) return at;
  }
}
// Ascending keys leave room for one.
constexpr int full = static_cast<int>(costly_leaves::leaf_items) - 1;

TEST(throwing_keys, a_leaf_is_divided_as_a_whole_or_not_at_all) {
  costly_leaves items;
  for (int i = 0; i < 6 * full; ++i) items.append(costly(10 * i), costly(10 * i));
  for (const int leaf : {0, 2, 4}) {
    costly_leaves full_one = items;
    change(full_one, 10 * full * leaf + 5, true);
    EXPECT_GT(fail_at_each_copy(full_one, 10 * full * leaf + 7, true), full);
  }
}
TEST(throwing_keys, the_last_item_of_a_leaf_goes_as_a_whole_or_not_at_all) {
  costly_leaves items;
  for (int i = 0; i < 4 * full; ++i) items.append(costly(i), costly(i));
  for (int leaf = 0; leaf < 4; ++leaf) {
    costly_leaves one_left = items;
    for (int i = 1; i < full; ++i) change(one_left, full * leaf + i, false);
    EXPECT_GT(fail_at_each_copy(one_left, full * leaf, false), 1);
  }
}
TEST(throwing_keys, leaves_are_joined_as_a_whole_or_not_at_all) {
  costly_leaves items;
  for (int i = 0; i < 4 * full; ++i) items.append(costly(i), costly(i));
  for (int k = 3 * full + 20; k < 4 * full; ++k) change(items, k, false);
  const auto version = items.version();
  for (int k = 2 * full; k < 3 * full; ++k) {
    // fewer are left than the quarter with which leaves are joined
    if (k > 3 * full - 20) {
      EXPECT_GT(fail_at_each_copy(items, k, false), 1);
    }
    change(items, k, false);
  }
  EXPECT_NE(items.version(), version);
  EXPECT_EQ(keys_in(items).size(), static_cast<std::size_t>(2 * full + 20));
}

}  // namespace throwing_tests
