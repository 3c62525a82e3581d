// SPDX-License-Identifier: Apache-2.0
// Histories of clients, in simulated worlds of many schedules and on threads, against what the
// levels promise.
#include <orrery/orrery.hpp>
#include <orrery/process/internal/test_world.hpp>
#include <orrery/scheduler/sanitizers.hpp>
#include <orrery/service/internal/test_history.hpp>
#include <orrery/service/internal/test_placed_history.hpp>
#include <orrery/service/internal/test_requests.hpp>
#include <orrery/service/ordered_list.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace history_tests {

using orrery::consistency;
using orrery::ordered_list;
using orrery::reply_order;
using orrery::service::list_operation;
using orrery::testing::find_placed_violation;
using orrery::testing::find_violation;
using orrery::testing::list_event;
using orrery::testing::make_request;
using list = ordered_list<int, int>;

std::atomic<std::uint64_t> ticks;
std::mutex guard;
std::vector<list_event> history;  // NOLINT: of the test that runs

struct client_plan {
  list of;
  std::uint32_t id = 0;
  std::uint32_t seed = 0;
  std::uint32_t requests = 0;
  std::uint32_t window = 1;
  consistency level = consistency::per_key;
  std::uint32_t keys = 1;
  bool simulated = false;
  std::uint32_t snapshots = 0;  // as streams, in between
  bool tunes = false;           // W and G change all the time
};

// The result of a snapshot, as an event; `from` is the number of requests before it.
list_event take_snapshot(orrery::list_session<int, int>& s, const client_plan& p, std::uint64_t number) {
  list_event e;
  e.session = p.id;
  e.number = number;
  e.snapshot = true;
  e.begun = ++ticks;
  auto all = s.stream({}, {}, 2);
  for (auto part = all.next(); !part.empty(); part = all.next()) {
    EXPECT_LE(part.size(), 2U);
    for (const auto& [k, v] : part) EXPECT_TRUE(e.seen.emplace(k, v).second);
  }
  e.ended = ++ticks;
  return e;
}

// Random requests; what came of them goes to `history`.
int act(const client_plan& p) {
  std::mt19937 random(p.seed);
  const auto order = random() % 2 == 0 ? reply_order::any : reply_order::as_requested;
  auto s = p.of.open({.window = p.window, .order = p.level, .replies = order});
  std::vector<list_event> mine;
  std::vector<list_event> snapshots;
  const auto take = [&](const auto& r) {
    list_event& e = mine[r.request];
    e.done = r.done;
    e.found = r.value;
    e.key_found = r.key;
    e.size = r.size;
    e.moment = r.moment;
    e.ended = ++ticks;
  };
  for (std::uint32_t i = 0; i < p.requests; ++i) {
    list_event e;
    e.session = p.id;
    e.number = i;
    e.operation = static_cast<list_operation>(random() % (p.level == consistency::total ? 10 : 6));
    if (e.operation != list_operation::erase && random() % 4 == 0) e.operation = list_operation::insert;
    e.key = static_cast<int>(random() % p.keys);
    e.value = static_cast<int>(random() % 4);
    e.expected = static_cast<int>(random() % 4);
    e.begun = ++ticks;
    mine.push_back(e);
    if (p.tunes && random() % 16 == 0) p.of.tune(2 + random() % 8);
    if (p.tunes && random() % 16 == 0) s.set_window(static_cast<std::uint32_t>(1 + random() % (2 * p.window)));
    EXPECT_EQ(make_request(s, e), i);
    if (p.snapshots != 0 && i % (p.requests / p.snapshots) == p.id) snapshots.push_back(take_snapshot(s, p, i));
    if (random() % 8 == 0) {
      if (const auto r = s.receive()) take(*r);
    }
    // in virtual time: answers come while requests are gathered
    if (p.simulated && random() % 4 == 0) orrery::sleep_for(std::chrono::microseconds(random() % 20));
    while (const auto r = s.try_receive()) take(*r);
  }
  std::uint64_t next = 0;
  while (const auto r = s.receive()) {
    EXPECT_TRUE(order == reply_order::any || r->request >= next) << "replies are out of order";
    next = r->request;
    take(*r);
  }
  EXPECT_EQ(s.outstanding(), 0U);
  const std::scoped_lock lock(guard);
  history.insert(history.end(), mine.begin(), mine.end());
  history.insert(history.end(), snapshots.begin(), snapshots.end());
  return 0;
}

// Clients on all PEs at once; returns what their replies contradict, and counts ranges.
std::string run_clients(consistency level, std::uint32_t window, std::uint32_t seed, std::uint32_t requests,
                        std::uint32_t keys, std::size_t* ranges = nullptr, std::uint32_t snapshots = 0) {
  history.clear();
  auto l = list::make({.range_items = 3});
  std::vector<orrery::future<int>> ends;
  for (std::uint32_t i = 0; i < 3; ++i)
    ends.push_back(orrery::start_call<&act>(orrery::pe(i % orrery::world_pes()),
                                            client_plan{l, i, seed * 3 + i, requests, window, level, keys,
                                                        ranges != nullptr, snapshots, seed % 2 == 0 && window > 1}));
  for (auto& e : ends) e.get();
  if (ranges != nullptr) *ranges = l.statistics().size();
  l.end();
  return level == consistency::total ? orrery::testing::find_total_violation(history) : find_violation(history, level);
}

void explore(consistency level, std::uint32_t window, std::uint32_t schedules, std::uint32_t requests,
             std::uint32_t keys, std::uint32_t snapshots = 0) {
  std::size_t most = 0;
  if (orrery::scheduler::slowed_down) schedules /= 10;  // a sanitizer sees no more in others
  for (std::uint32_t seed = 1; seed <= schedules; ++seed) {
    orrery::testing::in_simulation(fmt::format("machines=3,jitter={}us,seed={}", 1 + seed % 20, seed), [&] {
      std::size_t ranges = 0;
      EXPECT_EQ(run_clients(level, window, seed, requests, keys, &ranges, snapshots), "") << "seed " << seed;
      most = std::max(most, ranges);
    });
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(most, 4U) << "no range was split";
}

// Few keys for many requests, so that each key has a history; many keys, so that ranges split all
// the time.
TEST(histories, of_unordered_sessions_are_linearizable_key_by_key) { explore(consistency::unordered, 16, 60, 60, 24); }
TEST(histories, of_per_key_sessions_keep_the_order_of_each_key) { explore(consistency::per_key, 16, 120, 60, 24); }
TEST(histories, of_large_windows_keep_the_order_of_each_key) { explore(consistency::per_key, 256, 60, 120, 48); }
TEST(histories, of_windows_of_one_are_linearizable) { explore(consistency::sequential, 1, 30, 20, 24); }
TEST(histories, of_sequential_sessions_keep_the_order_of_all_keys) { explore(consistency::sequential, 8, 90, 20, 24); }

TEST(histories, of_total_sessions_are_what_one_process_would_answer) { explore(consistency::total, 32, 120, 100, 24); }
TEST(histories, of_streams_among_writers_see_all_keys_at_one_moment) {
  explore(consistency::per_key, 4, 150, 12, 12, 3);
}
TEST(histories, of_streams_in_total_sessions_see_all_keys_at_one_moment) {
  for (std::uint32_t seed = 1; seed <= 30; ++seed)
    orrery::testing::in_simulation(fmt::format("machines=3,jitter=9us,seed={}", seed), [&] {
      std::size_t ranges = 0;
      (void)run_clients(consistency::total, 4, seed, 12, 12, &ranges, 3);
      EXPECT_EQ(find_violation(history, consistency::sequential), "") << "seed " << seed;
    });
}

constexpr std::uint32_t seeds_on_threads = orrery::scheduler::slowed_down ? 4 : 10;
TEST(histories, on_threads_are_what_one_process_would_answer_in_total_sessions) {
  for (std::uint32_t seed = 1; seed <= seeds_on_threads; ++seed)
    orrery::testing::in_world(2, [&] { EXPECT_EQ(run_clients(consistency::total, 64, seed, 500, 100), ""); });
}
TEST(histories, on_threads_keep_the_order_of_each_key) {
  for (std::uint32_t seed = 1; seed <= seeds_on_threads; ++seed)
    orrery::testing::in_world(2, [&] { EXPECT_EQ(run_clients(consistency::per_key, 16, seed, 80, 40), ""); });
}

// --- the checker itself --------------------------------------------------------------------------

list_event event(std::uint32_t session, std::uint64_t number, list_operation o, int key, std::uint64_t begun,
                 std::uint64_t ended, bool done, std::optional<int> found = {}) {
  return {session, number, o, key, 1, 0, begun, ended, done, found, {}, 0, 0, false, {}};
}

TEST(history_checker, rejects_a_lost_update) {
  const std::vector<list_event> h{event(0, 0, list_operation::insert, 5, 1, 2, true),
                                  event(1, 0, list_operation::find, 5, 3, 4, false)};
  EXPECT_NE(find_violation(h, consistency::unordered), "");
}
TEST(history_checker, accepts_either_reply_while_an_insertion_is_outstanding) {
  std::vector<list_event> h{event(0, 0, list_operation::insert, 5, 1, 4, true),
                            event(1, 0, list_operation::find, 5, 2, 3, false)};
  EXPECT_EQ(find_violation(h, consistency::sequential), "");
  h[1].done = true;
  h[1].found = 1;
  EXPECT_EQ(find_violation(h, consistency::sequential), "");
}
TEST(history_checker, rejects_a_snapshot_with_the_later_of_two_items_only) {
  std::vector<list_event> h{event(0, 0, list_operation::insert, 5, 1, 2, true),
                            event(0, 1, list_operation::insert, 6, 3, 4, true)};
  list_event s;
  s.session = 1;
  s.snapshot = true;
  s.begun = 1;
  s.ended = 9;
  s.seen = {{5, 1}};
  h.push_back(s);
  EXPECT_EQ(find_violation(h, consistency::per_key), "");
  h.back().seen = {{6, 1}};
  EXPECT_NE(find_violation(h, consistency::per_key), "");
}
TEST(history_checker, tells_total_from_sequential) {
  // All is as one process would answer, but the replies say another order.
  std::vector<list_event> h{event(0, 0, list_operation::insert, 5, 1, 2, true),
                            event(1, 0, list_operation::insert, 6, 3, 4, true)};
  h[0].moment = 1;
  EXPECT_EQ(find_violation(h, consistency::sequential), "");
  EXPECT_NE(orrery::testing::find_total_violation(h), "");
  h[1].moment = 2;
  EXPECT_EQ(orrery::testing::find_total_violation(h), "");
}
TEST(history_checker, tells_per_key_from_unordered) {
  // One client inserts 5 and looks for it before the reply: the request for the same key has
  // overtaken.
  const std::vector<list_event> h{event(0, 0, list_operation::insert, 5, 1, 3, true),
                                  event(0, 1, list_operation::find, 5, 2, 4, false)};
  EXPECT_EQ(find_violation(h, consistency::unordered), "");
  EXPECT_NE(find_violation(h, consistency::per_key), "");
}
TEST(history_checker, tells_sequential_from_per_key) {
  // Two clients insert one key and look for that of the other one; both miss.
  const std::vector<list_event> h{
      event(0, 0, list_operation::insert, 5, 1, 5, true), event(0, 1, list_operation::find, 10, 2, 6, false),
      event(1, 0, list_operation::insert, 10, 3, 7, true), event(1, 1, list_operation::find, 5, 4, 8, false)};
  EXPECT_EQ(find_violation(h, consistency::per_key), "");
  EXPECT_NE(find_violation(h, consistency::sequential), "");
}

// The same levels, where replies say their places.
std::vector<list_event> placed(std::vector<list_event> h,
                               const std::vector<std::pair<std::uint64_t, std::uint64_t>>& places) {
  for (std::size_t i = 0; i < h.size(); ++i) std::tie(h[i].version, h[i].moment) = places[i];
  return h;
}
list_event snapshot_of(std::uint64_t executed, std::map<int, int> seen, std::uint64_t begun, std::uint64_t ended) {
  list_event s;
  s.session = 1;
  s.snapshot = true;
  s.begun = begun;
  s.ended = ended;
  s.seen = std::move(seen);
  s.parts = {{{}, {}, 1, executed}};
  return s;
}
TEST(placed_history_checker, rejects_a_lost_update_and_places_that_time_contradicts) {
  const auto h =
      placed({event(0, 0, list_operation::insert, 5, 1, 2, true), event(1, 0, list_operation::find, 5, 3, 4, false)},
             {{1, 0}, {1, 1}});
  EXPECT_NE(find_placed_violation(h, consistency::unordered), "");
  EXPECT_NE(find_placed_violation(placed(h, {{1, 1}, {1, 0}}), consistency::unordered), "") << "it had ended before";
  EXPECT_NE(find_placed_violation(placed(h, {{1, 1}, {1, 1}}), consistency::unordered), "") << "one place for two";
}
TEST(placed_history_checker, goes_by_the_version_of_keys_that_change_hands) {
  auto h =
      placed({event(0, 0, list_operation::insert, 5, 1, 9, true), event(1, 0, list_operation::find, 5, 2, 8, true, 1)},
             {{1, 70}, {2, 0}});
  EXPECT_EQ(find_placed_violation(h, consistency::sequential), "");
  h[1].version = 0;
  EXPECT_NE(find_placed_violation(h, consistency::sequential), "");
}
TEST(placed_history_checker, tells_per_key_from_unordered) {
  const auto h =
      placed({event(0, 0, list_operation::insert, 5, 1, 3, true), event(0, 1, list_operation::find, 5, 2, 4, false)},
             {{1, 1}, {1, 0}});
  EXPECT_EQ(find_placed_violation(h, consistency::unordered), "");
  EXPECT_NE(find_placed_violation(h, consistency::per_key), "");
}
TEST(placed_history_checker, tells_sequential_from_per_key) {
  const auto h =
      placed({event(0, 0, list_operation::insert, 5, 1, 5, true), event(0, 1, list_operation::find, 10, 2, 6, false),
              event(1, 0, list_operation::insert, 10, 3, 7, true), event(1, 1, list_operation::find, 5, 4, 8, false)},
             {{1, 1}, {2, 0}, {2, 1}, {1, 0}});
  EXPECT_EQ(find_placed_violation(h, consistency::per_key), "");
  EXPECT_NE(find_placed_violation(h, consistency::sequential), "");
}
TEST(placed_history_checker, tells_total_from_sequential) {
  // One order explains all; another one is what the replies say.
  std::vector<list_event> h{event(0, 0, list_operation::insert, 5, 1, 2, true),
                            event(1, 0, list_operation::insert, 6, 3, 4, true)};
  EXPECT_EQ(find_placed_violation(placed(h, {{1, 0}, {2, 0}}), consistency::sequential), "");
  h[0].moment = 1;
  EXPECT_NE(orrery::testing::find_total_violation(h), "");
}
TEST(placed_history_checker, rejects_a_snapshot_with_the_later_of_two_items_only) {
  auto h =
      placed({event(0, 0, list_operation::insert, 5, 1, 2, true), event(0, 1, list_operation::insert, 6, 3, 4, true)},
             {{1, 0}, {1, 1}});
  h.push_back(snapshot_of(1, {{5, 1}}, 1, 9));
  EXPECT_EQ(find_placed_violation(h, consistency::per_key), "");
  h.back() = snapshot_of(1, {{6, 1}}, 1, 9);
  EXPECT_NE(find_placed_violation(h, consistency::per_key), "") << "it is not what was there";
  // Each part is right, but not at one moment: 6 was inserted after 5.
  h[1].version = 2;
  h[1].moment = 0;
  h.back().parts = {{{}, 6, 1, 0}, {6, {}, 2, 1}};
  EXPECT_NE(find_placed_violation(h, consistency::per_key), "");
}
TEST(placed_history_checker, checks_ten_thousand_requests_at_once) {
  std::vector<list_event> h;
  for (std::uint64_t i = 0; i < 10'000; ++i) {
    h.push_back(event(i % 7, i / 7, i % 2 == 0 ? list_operation::insert : list_operation::erase, 5, 2 * i + 1,
                      2 * i + 2, true));
    h.back().moment = i;
  }
  EXPECT_EQ(find_placed_violation(h, consistency::sequential), "");
  h[5000].done = false;
  EXPECT_NE(find_placed_violation(h, consistency::sequential), "");
}

}  // namespace history_tests
