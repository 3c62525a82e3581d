// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>
#include <orrery/process/internal/test_world.hpp>
#include <orrery/service/internal/test_history.hpp>
#include <orrery/service/ordered_list.hpp>
#include <orrery/service/walking_list.hpp>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace walking_list_tests {

using orrery::consistency;
using orrery::walking_list;
using orrery::walking_options;
using orrery::service::list_operation;
using orrery::testing::in_simulation;
using orrery::testing::in_world;
using orrery::testing::list_event;
using list = walking_list<int, int>;

std::optional<std::pair<int, int>> item_at(const std::map<int, int>& m, std::map<int, int>::const_iterator i) {
  return i == m.end() ? std::nullopt : std::optional(std::pair(i->first, i->second));
}

void compare_with_map(const walking_options& o) {
  auto l = list::make(o);
  const std::uint64_t free = l.free_processes();
  std::map<int, int> m;
  {
    auto s = l.open({.window = 4});
    std::mt19937 random(5);
    for (int i = 0; i < 300; ++i) {
      const int k = static_cast<int>(random() % 40);
      const auto at = m.find(k);
      switch (random() % 6) {
        case 0:
        case 1:
          EXPECT_EQ(s.insert(k, i), m.emplace(k, i).second);
          break;
        case 2:
          EXPECT_EQ(s.erase(k), m.erase(k) == 1);
          break;
        case 3:
          EXPECT_EQ(s.insert_or_update(k, i), m.insert_or_assign(k, i).second);
          break;
        case 4:
          EXPECT_EQ(s.after(k), item_at(m, m.upper_bound(k)));
          break;
        default:
          EXPECT_EQ(s.find(k), at != m.end() ? std::optional(at->second) : std::nullopt);
      }
      if (i == 150) l.tune(o.granularity + 1, 0);
    }
    EXPECT_EQ(s.size(), m.size());
    EXPECT_EQ(s.first(), item_at(m, m.begin()));
    EXPECT_EQ(s.last(), item_at(m, m.empty() ? m.end() : std::prev(m.end())));
    for (int k = 0; k < 40; ++k) EXPECT_EQ(s.erase(k), m.contains(k));
    EXPECT_EQ(s.size(), 0U);
    EXPECT_EQ(s.last(), std::nullopt);
  }
  while (l.free_processes() != free) orrery::yield();  // they come back by themselves
  l.end();
}

TEST(walking_list, gives_the_answers_of_a_map_with_one_item_for_each_process) {
  in_world(2, [] { compare_with_map({.processes = 30}); });
}
TEST(walking_list, gives_the_answers_of_a_map_with_many_items_for_each_process) {
  in_world(2, [] { compare_with_map({.processes = 30, .granularity = 5, .forwards = 2}); });
}
TEST(walking_list, gives_the_answers_of_a_map_when_every_message_is_acknowledged) {
  in_simulation("machines=3,jitter=5us,seed=2",
                [] { compare_with_map({.processes = 20, .granularity = 2, .forwards = 0}); });
}

TEST(walking_list, says_that_it_is_full_and_goes_on) {
  in_world(2, [] {
    auto l = list::make({.processes = 3});  // of each PE
    {
      auto s = l.open();
      for (int k = 0; k < 6; ++k) EXPECT_TRUE(s.insert(k, k)) << "the managers give to each other";
      const std::string said = orrery::testing::what_is_thrown<orrery::usage_error>([&] { (void)s.insert(6, 6); });
      EXPECT_NE(said.find("the list is full"), std::string::npos) << said;
      EXPECT_EQ(s.size(), 6U);
      EXPECT_TRUE(s.erase(3));
      while (l.free_processes() == 0) orrery::yield();
      EXPECT_TRUE(s.insert(6, 6));
    }
    l.end();
  });
}

std::vector<list_event> history;  // NOLINT: of the simulated world that runs, on one thread
std::uint64_t ticks;

// Random requests, many outstanding.
int act(const list& l, std::uint32_t id, std::uint32_t seed) {
  std::mt19937 random(seed);
  auto s = l.open({.window = 8, .order = consistency::total});
  std::vector<list_event> mine;
  const auto take = [&](const auto& r) {
    mine[r.request].done = r.done;
    mine[r.request].found = r.value;
    mine[r.request].ended = ++ticks;
  };
  for (std::uint32_t i = 0; i < 20; ++i) {
    list_event e;
    e.session = id;
    e.number = i;
    e.key = static_cast<int>(random() % 6);
    e.value = static_cast<int>(random() % 4);
    e.begun = ++ticks;
    const auto what = random() % 3;
    e.operation = what == 0 ? list_operation::find : what == 1 ? list_operation::insert : list_operation::erase;
    mine.push_back(e);
    if (what == 0) {
      s.start_find(e.key);
    } else if (what == 1) {
      s.start_insert(e.key, e.value);
    } else {
      s.start_erase(e.key);
    }
    // in virtual time
    if (random() % 4 == 0) orrery::sleep_for(std::chrono::microseconds(random() % 20));
    while (const auto r = s.try_receive()) take(*r);
  }
  while (const auto r = s.receive()) take(*r);
  history.insert(history.end(), mine.begin(), mine.end());
  return 0;
}

// Sequential with many outstanding requests: the order at the head is one for all.
TEST(walking_list, keeps_all_requests_in_the_order_of_their_arrival) {
  for (std::uint32_t seed = 1; seed <= 120; ++seed) {
    in_simulation(fmt::format("machines=3,net=100ns:10ns:0:1G,jitter={}us,seed={}", seed % 2 == 0 ? 2 : 500, seed),
                  [&] {
                    history.clear();
                    auto l = list::make({.processes = 8, .granularity = 1 + seed % 3, .forwards = seed % 4});
                    std::vector<orrery::future<int>> ends;
                    for (std::uint32_t i = 0; i < 3; ++i)
                      ends.push_back(orrery::start_call<&act>(orrery::pe(i), l, i, seed * 3 + i));
                    for (auto& e : ends) e.get();
                    l.end();
                    EXPECT_EQ(orrery::testing::find_violation(history, consistency::sequential), "") << "seed " << seed;
                  });
    if (HasFailure()) return;
  }
}

// With one client the order at the head is known: each reply is what a map says, however many
// requests walk at once.
TEST(walking_list, lets_no_request_overtake_another_while_the_chain_changes) {
  for (std::uint32_t seed = 1; seed <= 30; ++seed) {
    in_simulation(fmt::format("machines=3,net=100ns:10ns:0:1G,jitter=100us,seed={}", seed), [&] {
      // few: neighbours are on different PEs
      auto l = list::make({.processes = 4, .forwards = 1000});
      std::map<int, int> m;
      std::vector<std::pair<bool, std::optional<int>>> expected;
      {
        auto s = l.open({.window = 64, .order = seed % 2 == 0 ? consistency::total : consistency::sequential});
        std::mt19937 random(seed);
        int wrong = 0;
        const auto take = [&](const auto& r) {
          if (expected[r.request] != std::pair(r.done, r.value)) ++wrong;
        };
        for (int i = 0; i < 400; ++i) {
          const int k = static_cast<int>(random() % 10);
          const auto at = m.find(k);
          switch (random() % 3) {
            case 0:
              s.start_insert(k, i);
              expected.emplace_back(m.emplace(k, i).second, std::nullopt);
              break;
            case 1:
              s.start_erase(k);
              expected.emplace_back(m.erase(k) == 1, std::nullopt);
              break;
            default:
              s.start_find(k);
              expected.emplace_back(at != m.end(), at != m.end() ? std::optional(at->second) : std::nullopt);
          }
          while (const auto r = s.try_receive()) take(*r);
        }
        while (const auto r = s.receive()) take(*r);
        EXPECT_EQ(wrong, 0) << "seed " << seed;
      }
      l.end();
    });
  }
}

TEST(walking_list, holds_one_item_with_all_parameters_at_their_least) {
  in_world(2, [] {
    auto l = list::make({.pes = {1}, .processes = 1, .granularity = 1, .forwards = 0});
    {
      auto s = l.open({.window = 1, .order = consistency::sequential});
      for (int k = 0; k < 3; ++k) {
        EXPECT_TRUE(s.insert(k, k));
        EXPECT_EQ(s.last(), std::optional(std::pair(k, k)));
        EXPECT_FALSE(s.after(k));
        EXPECT_TRUE(s.erase(k));
        while (l.free_processes() == 0) orrery::yield();
      }
    }
    l.end();
  });
}

TEST(walking_list, fills_itself_and_gives_what_it_has_at_one_moment) {
  in_world(2, [] {
    auto l = list::make({.processes = 10, .granularity = 3});
    std::vector<std::pair<int, int>> items;
    for (int k = 0; k < 50; ++k) items.emplace_back(2 * k, k);
    l.fill(items, true);
    EXPECT_EQ(l.estimated_size(), 50U);
    EXPECT_EQ(l.free_processes(), 3U);
    {
      auto s = l.open({.window = 16});
      EXPECT_EQ(s.snapshot(), items);
      EXPECT_EQ(s.snapshot(9, 14), (std::vector<std::pair<int, int>>{{10, 5}, {12, 6}}));
      EXPECT_EQ(s.snapshot({}, 0), (std::vector<std::pair<int, int>>{}));
      auto scan = s.scan(11, 95, 7);
      std::vector<std::pair<int, int>> scanned;
      for (auto part = scan.next(); !part.empty(); part = scan.next()) {
        EXPECT_LE(part.size(), 7U);
        scanned.insert(scanned.end(), part.begin(), part.end());
      }
      EXPECT_EQ(scanned, (std::vector<std::pair<int, int>>(items.begin() + 6, items.begin() + 48)));
      auto stream = s.stream({}, {}, 7);
      s.erase(98);
      std::vector<std::pair<int, int>> streamed;
      for (auto part = stream.next(); !part.empty(); part = stream.next())
        streamed.insert(streamed.end(), part.begin(), part.end());
      EXPECT_EQ(streamed, items) << "as it was when the stream began";
      EXPECT_TRUE(s.insert(98, 49));
      for (int k = 0; k < 50; ++k) s.start_find(2 * k);
      int found = 0;
      while (const auto r = s.receive()) found += r->done ? 1 : 0;
      EXPECT_EQ(found, 50);
      EXPECT_EQ(s.size(), 50U);
    }
    const std::vector<std::pair<int, int>> wrong{{2, 0}, {1, 0}};
    EXPECT_THROW(l.fill(wrong), orrery::usage_error);
    l.end();
  });
}

TEST(walking_list, is_filled_only_if_it_is_empty_and_has_room) {
  in_world(2, [] {
    auto l = walking_list<int, int>::make({.processes = 2, .granularity = 2});
    const auto fill = [&](int n) {
      std::vector<std::pair<int, int>> items;
      for (int i = 0; i < n; ++i) items.emplace_back(i, i);
      l.fill(items);
    };
    EXPECT_THROW(fill(9), orrery::usage_error);
    fill(8);
    EXPECT_THROW(fill(1), orrery::usage_error) << "it is not empty";
    fill(0);
    EXPECT_EQ(l.open().size(), 8U);
    l.end();
  });
}

// How many processes of each of three PEs are in the list when a client on the first one has
// inserted 12 keys.
std::vector<std::uint64_t> used_of_each(orrery::spare_order o) {
  std::vector<std::uint64_t> used;
  in_world(3, [&] {
    auto l = list::make({.pes = {0, 1, 2}, .processes = 20, .spares = o});
    {
      auto s = l.open();
      for (int k = 0; k < 12; ++k) EXPECT_TRUE(s.insert(k, k));
      // the last process has nothing to do, those before it much
      if (o == orrery::spare_order::by_load)
        for (int i = 0; i < 100; ++i) (void)s.find(11);
      for (int k = 12; k < 15 && o == orrery::spare_order::by_load; ++k) EXPECT_TRUE(s.insert(k, k));
    }
    for (const auto& r : l.statistics()) used.push_back(r.processes - r.free);
    l.end();
  });
  return used;
}
TEST(walking_list, is_read_by_streams_that_outlive_their_sessions) {
  const auto body = [] {
    auto l = list::make({.processes = 60, .granularity = 4});
    std::vector<std::pair<int, int>> items;
    for (int k = 0; k < 100; ++k) items.emplace_back(k, -k);
    l.fill(items);
    const auto stream_of_a_short_session = [&] {
      auto s = l.open();
      return s.stream({}, {}, 8);
    };
    auto stream = stream_of_a_short_session();
    auto late = stream_of_a_short_session();
    orrery::sleep_for(std::chrono::milliseconds(1));  // the manager has heard of the end
    {
      auto s = l.open();
      for (int k = 0; k < 100; k += 2) EXPECT_TRUE(s.erase(k));
    }
    std::vector<std::pair<int, int>> streamed;
    for (auto part = stream.next(); !part.empty(); part = stream.next())
      streamed.insert(streamed.end(), part.begin(), part.end());
    EXPECT_EQ(streamed, items);
    EXPECT_EQ(late.next().size(), 8U);
    l.end();
    const auto read_on = [&] {
      while (!late.next().empty()) {
      }
    };
    EXPECT_THROW(read_on(), orrery::process_gone) << "the list has ended";
  };
  in_world(2, body);
  in_simulation("machines=2,jitter=10us,seed=3", body);
}

TEST(walking_list, takes_free_processes_from_its_own_pe_first) {
  EXPECT_EQ(used_of_each(orrery::spare_order::local_first), (std::vector<std::uint64_t>{12, 0, 0}));
}
TEST(walking_list, takes_free_processes_in_turn) {
  const auto used = used_of_each(orrery::spare_order::ring);
  EXPECT_GT(used[1], 1U);
  EXPECT_GT(used[2], 1U);
}
TEST(walking_list, takes_free_processes_from_where_most_are_free) {
  const auto used = used_of_each(orrery::spare_order::even);
  for (const std::uint64_t n : used) EXPECT_GE(n, 2U);
}
TEST(walking_list, takes_free_processes_from_where_least_is_done) {
  const auto used = used_of_each(orrery::spare_order::by_load);
  EXPECT_GT(used[1] + used[2], 0U);
}

TEST(walking_list, may_have_more_and_fewer_processes_while_it_runs) {
  in_world(2, [] {
    auto l = list::make({.processes = 2});
    {
      auto s = l.open();
      for (int k = 0; k < 4; ++k) EXPECT_TRUE(s.insert(k, k));
      EXPECT_THROW((void)s.insert(4, 4), orrery::usage_error);
      l.set_processes(3);
      EXPECT_EQ(l.free_processes(), 2U);
      EXPECT_TRUE(s.insert(4, 4));
      l.set_processes(1);
      EXPECT_EQ(l.free_processes(), 0U);
      EXPECT_TRUE(s.erase(0));
      EXPECT_THROW((void)s.insert(9, 9), orrery::usage_error) << "five of two";
      for (int k = 1; k < 5; ++k) EXPECT_TRUE(s.erase(k));
      while (l.free_processes() != 2) orrery::yield();
      EXPECT_TRUE(s.insert(7, 7));
    }
    l.end();
  });
}

TEST(walking_list, is_never_full_when_it_finds_the_size_of_processes_itself) {
  for (const bool descending : {false, true})
    in_world(2, [&] {
      constexpr auto automatic = orrery::tuning::automatic;
      auto l = list::make({.processes = 8, .granularity = automatic, .forwards = automatic});
      {
        auto s = l.open({.window = 32, .order = consistency::sequential});
        for (int k = 0; k < 500; ++k) s.start_insert(descending ? -k : k, k);
        while (const auto r = s.receive()) EXPECT_TRUE(r->done) << r->request;
        EXPECT_EQ(s.size(), 500U);
        const auto all = l.statistics();
        EXPECT_GE(std::max(all[0].granularity, all[1].granularity), 32U);
        EXPECT_EQ(all[0].window, 32U) << "where the client is";
        EXPECT_NE(all[0].forwards, automatic);
        const auto shown = orrery::stats(orrery::this_pe());  // as orrery top has it
        EXPECT_EQ(shown.service_window, 32U);
        EXPECT_EQ(shown.service_granularity, all[0].granularity);
        EXPECT_GT(shown.service_forwards, 0U);
      }
      l.end();
    });
}

TEST(walking_list, refuses_processes_of_no_items_and_levels_it_does_not_share) {
  in_world(1, [] {
    EXPECT_THROW((void)list::make({.granularity = 0}), orrery::usage_error);
    auto other = orrery::ordered_list<int, int>::make();
    EXPECT_THROW((void)other.open({.order = consistency::sequential_of_the_paper}), orrery::usage_error);
    other.end();
  });
}

}  // namespace walking_list_tests
