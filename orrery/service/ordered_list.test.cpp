// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>
#include <orrery/process/internal/test_world.hpp>
#include <orrery/service/ordered_list.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace ordered_list_tests {

using orrery::consistency;
using orrery::list_session;
using orrery::ordered_list;
using orrery::reply_order;
using orrery::testing::in_simulation;
using orrery::testing::in_world;
using list = ordered_list<int, std::string>;
using session = list_session<int, std::string>;
using model = std::map<int, std::string>;

std::optional<std::pair<int, std::string>> item_at(const model& m, model::const_iterator i) {
  if (i == m.end()) return {};
  return std::pair(i->first, i->second);
}

void expect_same(session& s, const model& m) {
  EXPECT_EQ(s.size(), m.size());
  EXPECT_EQ(s.first(), item_at(m, m.begin()));
  EXPECT_EQ(s.last(), item_at(m, m.empty() ? m.end() : std::prev(m.end())));
  const std::vector<std::pair<int, std::string>> all(m.begin(), m.end());
  EXPECT_EQ(s.snapshot(), all);
  std::vector<std::pair<int, std::string>> walked;
  auto walk = s.scan({}, {}, 7);
  for (auto part = walk.next(); !part.empty(); part = walk.next()) {
    EXPECT_LE(part.size(), 7U);
    walked.insert(walked.end(), part.begin(), part.end());
  }
  EXPECT_EQ(walked, all);
}

// Random operations, one at a time, beside a std::map.
void compare_with_map(int operations, consistency order = consistency::per_key) {
  auto l = list::make({.range_items = 8});
  auto s = l.open({.window = 4, .order = order});
  model m;
  std::mt19937 random(7);
  const auto key = [&] { return static_cast<int>(random() % 300); };
  for (int i = 0; i < operations; ++i) {
    const int k = key();
    const std::string v = std::to_string(random() % 3);
    const std::string w = std::to_string(random() % 3);
    const auto at = m.find(k);
    switch (random() % 8) {
      case 0:
      case 1:
        EXPECT_EQ(s.insert(k, v), m.emplace(k, v).second);
        break;
      case 2:
        EXPECT_EQ(s.erase(k), m.erase(k) == 1);
        break;
      case 3:
        EXPECT_EQ(s.update(k, v), at != m.end());
        if (at != m.end()) at->second = v;
        break;
      case 4:
        EXPECT_EQ(s.insert_or_update(k, v), m.insert_or_assign(k, v).second);
        break;
      case 5:
        EXPECT_EQ(s.compare_and_update(k, w, v), at != m.end() && at->second == w);
        if (at != m.end() && at->second == w) at->second = v;
        break;
      case 6:
        EXPECT_EQ(s.after(k), item_at(m, m.upper_bound(k)));
        break;
      default:
        EXPECT_EQ(s.find(k), at != m.end() ? std::optional(at->second) : std::nullopt);
    }
  }
  EXPECT_GT(l.statistics().size(), 8U);
  expect_same(s, m);
  for (int k = 0; k < 300; ++k) s.start_erase(k);
  while (s.receive()) {
  }
  expect_same(s, {});
  l.end();
}

TEST(ordered_list, gives_the_answers_of_a_map_on_threads) {
  in_world(2, [] { compare_with_map(1500); });
}
TEST(ordered_list, gives_the_answers_of_a_map_on_one_pe) {
  in_world(1, [] { compare_with_map(500); });
}
TEST(ordered_list, gives_the_answers_of_a_map_on_simulated_machines) {
  in_simulation("machines=3,jitter=5us,seed=3", [] { compare_with_map(1500); });
}

TEST(ordered_list, begins_with_ranges_for_stated_keys) {
  in_world(2, [] {
    auto l = list::make({.splits = {20, 10, 20}});
    EXPECT_EQ(l.statistics().size(), 3U);
    auto s = l.open();
    for (const int k : {25, 5, 20, 10, 15, 9}) s.insert(k, std::to_string(k));
    expect_same(s, {{5, "5"}, {9, "9"}, {10, "10"}, {15, "15"}, {20, "20"}, {25, "25"}});
    for (const auto& r : l.statistics()) EXPECT_EQ(r.items, 2U);
    EXPECT_EQ(s.snapshot(9, 20).size(), 3U);
    EXPECT_EQ(s.scan(9, 20).next().size(), 1U) << "a part is what one range has";
    EXPECT_TRUE(s.scan(21, 25).next().empty());
    l.end();
  });
}

TEST(ordered_list, streams_what_was_there_when_the_stream_was_made) {
  in_world(2, [] {
    auto l = list::make({.range_items = 8});
    auto s = l.open();
    model m;
    for (int k = 0; k < 200; ++k) s.start_insert(k, std::to_string(m.emplace(k, std::to_string(k)).first->first));
    while (s.receive()) {
    }
    auto all = s.stream({}, {}, 7);
    auto some = s.stream(20, 40, 100);
    std::vector<std::pair<int, std::string>> read = all.next();
    EXPECT_EQ(read.size(), 7U);
    for (int k = 0; k < 200; ++k) {
      if (k % 2 == 0) s.start_erase(k);
      s.start_update(k, "late");
      s.start_insert(1000 + k, "late");
    }
    while (s.receive()) {
    }
    for (auto part = all.next(); !part.empty(); part = all.next()) read.insert(read.end(), part.begin(), part.end());
    EXPECT_EQ(read, (std::vector<std::pair<int, std::string>>(m.begin(), m.end())));
    EXPECT_TRUE(all.next().empty());
    int k = 20;
    for (auto part = some.next(); !part.empty(); part = some.next())
      for (const auto& i : part) {
        EXPECT_EQ(i, std::pair(k, std::to_string(k)));
        ++k;
      }
    EXPECT_EQ(k, 40);
    EXPECT_EQ(s.size(), 300U);
    l.end();
  });
}

TEST(ordered_list, splits_large_ranges_when_it_is_tuned) {
  in_simulation("machines=2", [] {
    auto l = ordered_list<int, int>::make();
    {
      auto s = l.open();
      for (int k = 0; k < 1000; ++k) s.start_insert(k, k);
    }
    EXPECT_EQ(l.statistics().size(), 1U);
    l.tune(100);
    orrery::sleep_for(std::chrono::milliseconds(2));
    for (const auto& r : l.statistics()) {
      EXPECT_LE(r.items, 100U);
      EXPECT_EQ(r.limit, 100U);
    }
    EXPECT_EQ(l.estimated_size(), 1000U);
    EXPECT_THROW(l.tune(1), orrery::usage_error);
    l.end();
  });
}

// Finds each of these keys many times, on the caller's PE.
int look_for(const ordered_list<int, int>& l, int from, int to, int times) {
  auto s = l.open({.window = 256});
  int found = 0;
  for (int i = 0; i < times; ++i) {
    s.start_find(from + i % (to - from));
    while (const auto r = s.try_receive()) found += r->done ? 1 : 0;
  }
  while (const auto r = s.receive()) found += r->done ? 1 : 0;
  return found;
}

TEST(ordered_list, moves_ranges_to_their_clients_and_joins_what_is_empty) {
  in_simulation("machines=2", [] {
    auto l = ordered_list<int, int>::make({.range_items = 400, .splits = {1000, 2000, 3000, 4000}, .balancing = false});
    {
      auto s = l.open();
      for (int k = 0; k < 300; ++k)
        for (const int far : {0, 1000, 2000}) s.start_insert(far + k, k);
    }
    const auto pes = [&] {
      std::vector<std::uint32_t> all;
      for (const auto& r : l.statistics())
        if (r.items != 0) all.push_back(r.pe);
      return all;
    };
    (void)l.balance();  // what was done until now does not count
    EXPECT_EQ(orrery::call<&look_for>(orrery::pe(0), l, 1000, 1300, 20'000), 20'000);
    EXPECT_EQ(orrery::call<&look_for>(orrery::pe(1), l, 0, 300, 20'000), 20'000);
    EXPECT_GT(l.balance(), 0U);
    auto s = l.open();
    EXPECT_EQ(s.size(), 900U);
    std::vector<std::pair<int, int>> items = s.snapshot(290, 1010);
    EXPECT_EQ(items.size(), 20U);
    const auto report = l.statistics();
    EXPECT_LT(report.size(), 5U) << "empty ranges are one";
    std::uint64_t merges = 0;
    for (const auto& r : report) merges += r.merges;
    EXPECT_GT(merges, 0U);
    // The keys of each client are where the client is.
    for (const int first : {0, 1000}) {
      const std::uint32_t client = first == 0 ? 1 : 0;
      const auto where = pes();
      EXPECT_NE(std::ranges::find(where, client), where.end());
    }
    l.end();
  });
}

TEST(ordered_list, balances_itself_when_it_has_done_much) {
  in_simulation("machines=4", [] {
    auto l = ordered_list<int, int>::make({.pes = {0, 1}, .range_items = 100'000});
    {
      auto s = l.open({.window = 4096});
      for (int k = 0; k < 2000; ++k) s.start_insert(k, k);
    }
    EXPECT_EQ(l.statistics().size(), 1U);
    auto one = orrery::start_call<&look_for>(orrery::pe(2), l, 0, 2000, 300'000);
    auto other = orrery::start_call<&look_for>(orrery::pe(3), l, 0, 2000, 300'000);
    EXPECT_EQ(one.get(), 300'000);
    EXPECT_EQ(other.get(), 300'000);
    const auto all = l.statistics();
    EXPECT_GT(all.size(), 1U) << "the hot range is split";
    EXPECT_TRUE(std::ranges::any_of(all, [](const auto& r) { return r.pe == 0; }));
    EXPECT_TRUE(std::ranges::any_of(all, [](const auto& r) { return r.pe == 1; }));
    l.end();
  });
}

TEST(ordered_list, finds_the_size_of_its_ranges) {
  in_simulation("machines=2", [] {
    auto l = ordered_list<int, int>::make();
    {
      auto s = l.open();
      for (int k = 0; k < 20'000; ++k) s.start_insert(k, k);
      EXPECT_GT(s.window(), 0U);
      EXPECT_LT(s.window(), orrery::tuning::automatic);
    }
    EXPECT_EQ(l.statistics().size(), 1U);
    (void)l.balance();
    orrery::sleep_for(std::chrono::milliseconds(2));
    const auto all = l.statistics();
    EXPECT_GT(all.size(), 4U);
    for (const auto& r : all) EXPECT_LE(r.items, r.limit);
    EXPECT_EQ(l.open().size(), 20'000U);
    l.end();
  });
}

TEST(ordered_list, keeps_nothing_for_streams_that_have_ended) {
  in_simulation("machines=2", [] {
    auto l = list::make({.splits = {10}});
    auto s = l.open();
    for (int k = 0; k < 20; ++k) s.insert(k, "");
    const auto streams = [&] {
      std::uint64_t n = 0;
      for (const auto& r : l.statistics()) n += r.streams;
      return n;
    };
    {
      auto unread = s.stream({}, {}, 3);
      EXPECT_EQ(streams(), 2U);
      auto read = s.stream();
      while (!read.next().empty()) {
      }
      EXPECT_EQ(streams(), 2U);
    }
    orrery::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(streams(), 0U);
    EXPECT_EQ(l.estimated_size(), 20U);
    l.end();
  });
}

TEST(ordered_list, gives_the_answers_of_a_map_to_total_sessions) {
  in_simulation("machines=3,jitter=5us,seed=3", [] { compare_with_map(800, consistency::total); });
  in_world(2, [] { compare_with_map(800, consistency::total); });
}

TEST(ordered_list, takes_values_of_a_megabyte_and_keys_with_common_prefixes) {
  in_world(2, [] {
    using texts = ordered_list<std::string, std::vector<double>>;
    auto l = texts::make({.range_items = 4});
    auto s = l.open();
    const std::string prefix(100, 'x');
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(s.insert(prefix + std::to_string(i), {1.0 * i}));
    EXPECT_TRUE(s.update(prefix + "7", std::vector<double>(std::size_t{1} << 17U, 2.5)));
    EXPECT_EQ(s.find(prefix + "7")->size(), std::size_t{1} << 17U);
    EXPECT_EQ(s.find(prefix + "19"), std::vector<double>{19.0});
    EXPECT_EQ(s.find(prefix), std::nullopt);
    l.end();
  });
}

ordered_list<int, int> make_numbers() { return ordered_list<int, int>::make(); }

TEST(ordered_list, can_be_sent_and_outlives_the_process_that_made_it) {
  in_world(2, [] {
    const auto made = orrery::call<&make_numbers>(orrery::pe(1));
    auto l = made;
    EXPECT_TRUE(l.open().insert(1, 2));
    EXPECT_EQ(l.open().find(1), 2);
    l.end();
    EXPECT_FALSE(l);
    EXPECT_THROW((void)made.open(), orrery::process_gone);
  });
}

TEST(sessions, give_replies_in_the_order_of_the_requests_where_asked) {
  in_world(2, [] {
    auto l = ordered_list<int, int>::make({.splits = {50}});
    auto s = l.open({.window = 8, .replies = reply_order::as_requested});
    for (int k = 0; k < 100; ++k) {
      EXPECT_TRUE(s.insert(k, k));  // its number is skipped
      s.start_find((k * 37) % 100);
      while (const auto r = s.try_receive()) {
        EXPECT_EQ(r->request % 2, 1U);
      }
    }
    std::uint64_t last = 0;
    while (const auto r = s.receive()) {
      EXPECT_GT(r->request, last);
      last = r->request;
    }
    l.end();
  });
}

TEST(sessions, execute_requests_whose_replies_nobody_takes) {
  in_world(2, [] {
    auto l = ordered_list<int, int>::make({.range_items = 8, .splits = {50}});
    for (const auto order :
         {consistency::unordered, consistency::per_key, consistency::sequential, consistency::total}) {
      {
        auto s = l.open({.order = order});
        for (int k = 0; k < 100; ++k) s.start_insert(k, k);
      }
      auto s = l.open({.order = order});
      EXPECT_EQ(s.size(), 100U);
      for (int k = 0; k < 100; ++k) s.start_erase(k);
    }
    l.end();
  });
}

TEST(sessions, take_another_window_while_they_run) {
  in_world(2, [] {
    auto l = ordered_list<int, int>::make({.splits = {50}});
    auto s = l.open({.window = 1});
    int replies = 0;
    for (const std::uint32_t window : {1U, 64U, 3U, 500U, 2U}) {
      s.set_window(window);
      for (int k = 0; k < 100; ++k) {
        s.start_insert_or_update(k, k);
        EXPECT_LE(s.outstanding(), window);
      }
    }
    EXPECT_THROW(s.set_window(0), orrery::usage_error);
    for (; s.receive(); ++replies) {
    }
    EXPECT_EQ(replies, 500);
    l.end();
  });
}

TEST(sessions, never_have_more_requests_outstanding_than_their_window) {
  in_world(2, [] {
    auto l = ordered_list<int, int>::make({.splits = {50}});
    auto s = l.open({.window = 5});
    for (int k = 0; k < 100; ++k) {
      s.start_insert(k, k);
      EXPECT_LE(s.outstanding(), 5U);
    }
    int replies = 0;
    for (; const auto r = s.receive(); ++replies) EXPECT_TRUE(r->done);
    EXPECT_EQ(replies, 100);
    l.end();
  });
}

TEST(sessions, say_so_when_replies_are_never_taken) {
  in_world(1, [] {
    auto l = ordered_list<int, int>::make();
    EXPECT_THROW((void)l.open({.window = 0}), orrery::usage_error);
    auto s = l.open({.window = 2, .unfetched = 10});
    int made = 0;
    try {
      for (; made < 100; ++made) s.start_find(made);
    } catch (const orrery::usage_error&) {
    }
    EXPECT_LT(made, 20);
    EXPECT_EQ(s.find(1), std::nullopt) << "what takes no room goes on";
    l.end();
  });
}

// Says how many of them there are.
struct counted {
  counted() { ++there; }
  explicit counted(int n) : x(n) { ++there; }
  counted(const counted& o) : x(o.x) { ++there; }
  counted(counted&& o) noexcept : x(o.x) { ++there; }
  counted& operator=(const counted&) = default;
  counted& operator=(counted&&) noexcept = default;
  ~counted() { --there; }
  template <class A>
  void serialize(A& a) {
    a & x;
  }
  int x = 0;
  static int there;
};
int counted::there = 0;

TEST(sessions, keep_no_replies_that_were_taken) {
  for (const auto replies : {orrery::reply_order::any, orrery::reply_order::as_requested})
    in_world(1, [=] {
      auto l = ordered_list<int, counted>::make();
      {
        auto s = l.open({.window = 256, .replies = replies});
        EXPECT_TRUE(s.insert(1, counted(7)));
        for (int i = 0; i < 300; ++i) s.start_find(1);
        for (int i = 0; i < 50'000; ++i) {  // it always holds some reply
          s.start_find(1);
          const auto r = s.receive();
          ASSERT_TRUE(r && r->value && r->value->x == 7);
        }
        EXPECT_LT(counted::there, 5000);
        int left = 0;
        for (; const auto r = s.receive(); ++left) EXPECT_EQ(r->request, 50'001U + static_cast<unsigned>(left));
        EXPECT_EQ(left, 300);
      }
      l.end();
    });
}

// Says how many of them are not empty.
struct heavy {
  heavy() = default;
  explicit heavy(int n) : x(n) { there += holds(); }
  heavy(const heavy& o) : x(o.x) { there += holds(); }
  heavy(heavy&& o) noexcept : x(std::exchange(o.x, 0)) {}
  heavy& operator=(heavy o) noexcept {
    std::swap(x, o.x);
    return *this;
  }
  ~heavy() { there -= holds(); }
  bool operator==(const heavy& o) const { return x == o.x; }
  [[nodiscard]] int holds() const { return x != 0 ? 1 : 0; }
  template <class A>
  void serialize(A& a) {
    there -= holds();
    a & x;
    there += holds();
  }
  int x = 0;
  static int there;
};
int heavy::there = 0;

TEST(ordered_list, keeps_no_values_that_it_has_refused) {
  in_world(1, [] {
    auto l = ordered_list<int, heavy>::make();
    {
      auto s = l.open({.window = 64});
      EXPECT_TRUE(s.insert(1, heavy(1)));
      for (int i = 0; i < 60; ++i) {
        s.start_insert(1, heavy(2));
        s.start_update(5, heavy(3));
        s.start_compare_and_update(1, heavy(4), heavy(5));
      }
      while (const auto r = s.receive()) EXPECT_FALSE(r->done);
      EXPECT_EQ(heavy::there, 1);
      EXPECT_EQ(s.find(1)->x, 1);
    }
    l.end();
  });
}

TEST(sessions, send_many_requests_in_one_message) {
  in_world(2, [] {
    auto l = ordered_list<int, int>::make({.splits = {500}});
    auto s = l.open({.window = 256});
    for (int k = 0; k < 1024; ++k) s.start_insert(k, k);
    while (s.receive()) {
    }
    EXPECT_LE(s.batches(), 24U);
    EXPECT_EQ(s.repeated(), 0U);
    l.end();
  });
}

TEST(sessions, send_a_single_request_to_an_idle_range_at_once) {
  in_world(1, [] {
    auto l = ordered_list<int, int>::make({.splits = {50}});
    auto s = l.open({.window = 256});
    s.start_insert(1, 1);
    s.flush_idle();
    EXPECT_EQ(s.batches(), 1U);
    s.start_insert(51, 1);
    s.flush_idle();
    EXPECT_EQ(s.batches(), 2U) << "that the other range has not answered does not matter";
    EXPECT_EQ(s.find(1), 1);
    l.end();
  });
}
TEST(sessions, gather_what_is_flushed_while_its_range_has_not_answered) {
  for (const consistency level : {consistency::unordered, consistency::per_key, consistency::sequential}) {
    in_world(1, [&] {  // the range answers when its client parks
      auto l = ordered_list<int, int>::make();
      auto s = l.open({.window = 256, .order = level});
      for (int k = 0; k < 100; ++k) {
        s.start_insert(k, k);
        s.flush_idle();
      }
      EXPECT_EQ(s.batches(), 1U);
      for (int replies = 0; replies < 100; orrery::yield()) {
        while (const auto r = s.try_receive()) replies += r->done ? 1 : 0;
      }
      EXPECT_EQ(s.batches(), 2U) << "the second one went when the first one was answered";
      l.end();
    });
  }
}
TEST(sessions, send_half_of_a_window_also_to_a_range_that_has_not_answered) {
  in_world(1, [] {
    auto l = ordered_list<int, int>::make();
    auto s = l.open({.window = 16});
    s.start_insert(0, 0);
    s.flush_idle();
    for (int k = 1; k < 8; ++k) s.start_insert(k, k);
    s.flush_idle();
    EXPECT_EQ(s.batches(), 1U);
    s.start_insert(8, 8);
    EXPECT_EQ(s.batches(), 2U);
    while (s.receive()) {
    }
    EXPECT_EQ(s.size(), 9U);
    l.end();
  });
}
TEST(sessions, send_all_to_ranges_that_have_not_answered_where_they_are_told_to) {
  in_world(1, [] {
    auto l = ordered_list<int, int>::make();
    auto s = l.open({.window = 256});
    for (int k = 0; k < 10; ++k) {
      s.start_insert(k, k);
      s.flush();
    }
    EXPECT_EQ(s.batches(), 10U);
    EXPECT_EQ(l.open().size(), 10U) << "nobody has taken replies";
    l.end();
  });
}
TEST(sessions, send_what_is_flushed_when_they_end) {
  in_world(1, [] {
    auto l = ordered_list<int, int>::make();
    {
      auto s = l.open({.window = 256});
      for (int k = 0; k < 10; ++k) {
        s.start_insert(k, k);
        s.flush_idle();
      }
    }
    EXPECT_EQ(l.open().size(), 10U);
    l.end();
  });
}

// Requests of a session that does not know yet that the range was split.
std::uint64_t repeated_by(consistency level) {
  std::uint64_t repeated = 0;
  in_world(2, [&] {
    auto l = ordered_list<int, int>::make({.range_items = 2});
    auto s = l.open({.window = 8, .order = level});
    auto other = l.open();
    for (int k = 0; k < 3; ++k) EXPECT_TRUE(other.insert(k, k));
    EXPECT_EQ(other.size(), 3U);  // behind the split
    s.start_find(2);
    s.start_find(0);
    while (const auto r = s.receive()) EXPECT_TRUE(r->done);
    repeated = s.repeated();
    l.end();
  });
  return repeated;
}
TEST(sessions, execute_nothing_behind_what_has_moved_where_all_is_in_order) {
  EXPECT_EQ(repeated_by(consistency::unordered), 1U);
  EXPECT_EQ(repeated_by(consistency::per_key), 1U);
  EXPECT_EQ(repeated_by(consistency::sequential), 2U);
}

TEST(sessions, of_a_range_that_is_lost_get_node_lost_and_others_go_on) {
  const orrery::testing::leaks_expected of_the_lost_node;
  in_simulation("machines=2,lose=1@1ms,detect=100us", [] {
    auto l = ordered_list<int, int>::make({.splits = {50}});
    auto s = l.open();
    EXPECT_TRUE(s.insert(10, 1));
    EXPECT_TRUE(s.insert(90, 1));
    orrery::sleep_for(std::chrono::milliseconds(2));
    EXPECT_EQ(s.find(10), 1);
    EXPECT_THROW((void)s.find(90), orrery::node_lost);
    s.start_find(91);
    const auto r = s.receive();
    ASSERT_TRUE(r);
    EXPECT_THROW(r->check(), orrery::node_lost);
    EXPECT_THROW((void)s.size(), orrery::node_lost);
    EXPECT_TRUE(s.insert(11, 1));
    l.end();
  });
}

}  // namespace ordered_list_tests
