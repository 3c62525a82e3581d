// SPDX-License-Identifier: Apache-2.0
// Histories of walking lists in simulated worlds of many schedules, against what the levels
// promise. ORRERY_WALK_SCHEDULES=N tries N times as many.
#include <orrery/orrery.hpp>
#include <orrery/process/internal/test_world.hpp>
#include <orrery/service/internal/test_placed_history.hpp>
#include <orrery/service/internal/test_requests.hpp>
#include <orrery/service/walking_list.hpp>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace walking_chaos_tests {

using orrery::consistency;
using orrery::service::list_operation;
using orrery::testing::find_placed_violation;
using orrery::testing::find_violation;
using orrery::testing::in_simulation;
using orrery::testing::list_event;
using orrery::testing::make_request;
using orrery::testing::note_reply;
using orrery::testing::take_snapshot;
using list = orrery::walking_list<int, int>;
using node = orrery::service::walk_node<int, int>;

std::vector<list_event> history;  // NOLINT: of the world that runs
std::mutex guard;
std::atomic<std::uint64_t> ticks;

struct client_plan {
  list of;
  std::uint32_t id = 0;
  std::uint32_t seed = 0;
  std::uint32_t requests = 0;
  std::uint32_t window = 1;
  consistency level = consistency::per_key;
  int keys = 1;
  bool simple = false;  // find, insert and erase only
  bool sleeps = true;  // in virtual time
  std::uint32_t snapshots = 0;  // as streams, in between
};

struct client_event : list_event {
  bool refused = false;  // the list was full: it was not executed
};

bool sees_all_keys(consistency level) { return level == consistency::sequential || level == consistency::total; }

// Random requests, many outstanding; what came of them goes to `history`. W, K and G change all the
// time.
int act(const client_plan& p) {
  std::mt19937 random(p.seed);
  auto s = p.of.open({.window = p.window, .order = p.level, .places = true});
  std::vector<client_event> mine;
  std::vector<client_event> snapshots;
  const auto take = [&](const auto& r) {
    client_event& e = mine[r.request];
    e.refused = r.error != nullptr;
    note_reply(e, r);
    e.ended = ++ticks;
  };
  for (std::uint32_t i = 0; i < p.requests; ++i) {
    client_event e;
    e.session = p.id;
    e.number = i;
    e.operation = static_cast<list_operation>(random() % (sees_all_keys(p.level) ? 10 : 6));
    const auto much = random() % 8;
    if (much < 3 || p.simple)
      e.operation = much % 3 == 0   ? list_operation::find
                    : much % 3 == 1 ? list_operation::insert
                                    : list_operation::erase;
    e.key = static_cast<int>(random() % static_cast<unsigned>(p.keys));
    e.value = static_cast<int>(random() % 4);
    e.expected = static_cast<int>(random() % 4);
    e.begun = ++ticks;
    mine.push_back(e);
    (void)make_request(s, e);
    if (p.snapshots != 0 && i % (p.requests / p.snapshots) == p.id)
      snapshots.push_back(take_snapshot<client_event>(s, p.id, i, ticks));
    if (random() % 16 == 0) p.of.tune(1 + random() % 3, random() % 4);
    if (random() % 16 == 0) s.set_window(static_cast<std::uint32_t>(1 + random() % (2 * p.window)));
    if (random() % 8 == 0) {
      if (const auto r = s.receive()) take(*r);
    }
    // in virtual time
    if (random() % 4 == 0 && p.sleeps) orrery::sleep_for(std::chrono::microseconds(random() % 20));
    while (const auto r = s.try_receive()) take(*r);
  }
  while (const auto r = s.receive()) take(*r);
  const std::scoped_lock lock(guard);
  for (const client_event& e : mine)
    if (!e.refused) history.push_back(e);
  history.insert(history.end(), snapshots.begin(), snapshots.end());
  return 0;
}

struct seen {
  std::uint64_t jumps = 0;
  std::uint64_t stale = 0;
};

// Whether the level allows what happened, by the order in which the processes say that it happened.
// Short histories, and those of requests that look at more than one key, are searched for any
// order, too.
std::string judge(consistency level, bool simple) {
  if (level == consistency::total) return orrery::testing::find_total_violation(history);
  if (level == consistency::sequential_of_the_paper) return find_violation(history, consistency::sequential);
  if (sees_all_keys(level) && !simple) return find_violation(history, level);
  std::string wrong = find_placed_violation(history, level);
  if (wrong.empty() && history.size() <= 64) wrong = find_violation(history, level);
  return wrong;
}

// Three clients on three PEs; what their replies contradict.
template <class Node>
std::string run_clients(consistency level, client_plan p, std::uint32_t seed, seen* counts) {
  history.clear();
  auto l = list::make<Node>({.processes = 3 + seed % 6,
                             .granularity = 1 + seed % 3,
                             .forwards = seed % 4,
                             .spares = static_cast<orrery::spare_order>(seed % 4)});
  p.of = l;
  p.level = level;
  std::vector<orrery::future<int>> ends;
  for (p.id = 0; p.id < 3; ++p.id) {
    p.seed = seed * 3 + p.id;
    ends.push_back(orrery::start_call<&act>(orrery::pe(p.id % orrery::world_pes()), p));
  }
  for (auto& e : ends) e.get();
  for (const auto& r : l.statistics()) {
    if (counts != nullptr) counts->jumps += r.jumps;
    if (counts != nullptr) counts->stale += r.stale;
  }
  l.end();
  return judge(level, p.simple);
}

template <class Node>
std::string try_schedule(consistency level, std::uint32_t window, std::uint32_t seed, std::uint32_t requests, int keys,
                         seen* counts = nullptr, bool simple = false, std::uint32_t snapshots = 0) {
  std::string wrong;
  const std::string network = seed % 3 == 0 ? "net=100ns:10ns:0:1G," : "";
  in_simulation(fmt::format("machines=3,{}jitter={}us,seed={}", network, seed % 2 == 0 ? 2 : 200, seed), [&] {
    client_plan p{.of = {}, .requests = requests, .window = window, .keys = keys, .simple = simple};
    p.snapshots = snapshots;
    wrong = run_clients<Node>(level, p, seed, counts);
  });
  return wrong;
}

std::uint32_t times(std::uint32_t schedules) {
  if (orrery::scheduler::slowed_down) return schedules / 15;  // more shows a sanitizer nothing
  const char* const factor = std::getenv("ORRERY_WALK_SCHEDULES");
  return factor != nullptr ? schedules * static_cast<std::uint32_t>(std::atoi(factor)) : schedules;
}

seen explore(consistency level, std::uint32_t window, std::uint32_t schedules, std::uint32_t requests, int keys,
             bool simple = false) {
  seen counts;
  for (std::uint32_t seed = 1; seed <= times(schedules); ++seed) {
    EXPECT_EQ(try_schedule<node>(level, window, seed, requests, keys, &counts, simple), "") << "seed " << seed;
    if (::testing::Test::HasFailure()) break;
  }
  return counts;
}

TEST(walking_histories, of_unordered_sessions_are_linearizable_key_by_key) {
  const seen counts = explore(consistency::unordered, 16, 250, 100, 12);
  EXPECT_GT(counts.jumps, 0U);
  EXPECT_GT(counts.stale, 0U) << "no shortcut was ever stale";
}
TEST(walking_histories, of_per_key_sessions_keep_the_order_of_each_key) {
  const seen counts = explore(consistency::per_key, 16, 250, 100, 12);
  EXPECT_GT(counts.jumps, 0U);
  EXPECT_GT(counts.stale, 0U);
}
TEST(walking_histories, of_sequential_sessions_keep_the_order_of_all_keys) {
  explore(consistency::sequential, 8, 200, 18, 9);
  (void)explore(consistency::sequential, 3, 500, 20, 9, true);
  const seen counts = explore(consistency::sequential, 16, 100, 200, 12, true);
  EXPECT_GT(counts.stale, 0U);
}
TEST(walking_histories, of_windows_of_one_are_linearizable) { explore(consistency::sequential, 1, 50, 18, 9); }
TEST(walking_histories, of_total_sessions_are_what_one_process_would_answer) {
  explore(consistency::total, 16, 250, 60, 12);
}

TEST(walking_histories, of_streams_among_writers_see_all_keys_at_one_moment) {
  for (std::uint32_t seed = 1; seed <= times(150) && !HasFailure(); ++seed) {
    EXPECT_EQ(try_schedule<node>(consistency::per_key, 4, seed, 12, 9, nullptr, true, 3), "") << "seed " << seed;
    EXPECT_EQ(try_schedule<node>(consistency::sequential, 8, seed, 60, 12, nullptr, true, 10), "") << "seed " << seed;
  }
}

TEST(walking_histories, on_threads_are_what_the_levels_promise) {
  for (std::uint32_t seed = 1; seed <= 10; ++seed)
    orrery::testing::in_world(2, [&] {
      const client_plan p{.of = {}, .requests = 300, .window = 32, .keys = 12, .sleeps = false};
      EXPECT_EQ(run_clients<node>(consistency::total, p, seed, nullptr), "");
      const client_plan few{.of = {}, .requests = 20, .window = 8, .keys = 9, .sleeps = false};
      EXPECT_EQ(run_clients<node>(consistency::sequential, few, seed, nullptr), "");
      client_plan long_one{.of = {}, .requests = 500, .window = 8, .keys = 12, .simple = true, .sleeps = false};
      long_one.snapshots = 20;
      EXPECT_EQ(run_clients<node>(consistency::sequential, long_one, seed, nullptr), "");
      const client_plan more{.of = {}, .requests = 500, .window = 16, .keys = 12, .sleeps = false};
      EXPECT_EQ(run_clients<node>(consistency::per_key, more, seed, nullptr), "");
    });
}

// The rule of the paper lets two clients see their insertions in different orders. Some schedule
// shows it.
TEST(walking_histories, of_the_papers_sequential_sessions_are_not_sequential) {
  std::string wrong;
  std::uint32_t seed = 0;
  while (wrong.empty() && seed < 20000)
    wrong = try_schedule<node>(consistency::sequential_of_the_paper, 8, ++seed, 18, 9, nullptr, true);
  EXPECT_NE(wrong, "");
}

/// A planted bug: a process answers whatever comes through a shortcut, also when it is free, or its
/// keys are others.
struct node_that_answers_when_stale : node {
  using node::node;
  bool belongs(const request&) const override { return true; }
};
TEST(walking_histories, show_a_stale_shortcut_that_answers) {
  std::string wrong;
  for (std::uint32_t seed = 1; seed <= 100 && wrong.empty(); ++seed)
    wrong = try_schedule<node_that_answers_when_stale>(consistency::per_key, 16, seed, 40, 12);
  EXPECT_NE(wrong, "");
}

/// A planted bug: now and then a process says that it has taken an item, and has not.
struct node_that_loses_insertions : node {
  using node::node;
  std::uint64_t take_least(std::span<const std::byte> item, bool always, std::uint64_t version) override {
    return ++asked % 3 == 0 ? site_.next_version(version) : node::take_least(item, always, version);
  }
  static inline int asked = 0;
};
TEST(walking_histories, show_an_insertion_that_is_lost) {
  std::string wrong;
  for (std::uint32_t seed = 1; seed <= 100 && wrong.empty(); ++seed)
    wrong = try_schedule<node_that_loses_insertions>(consistency::total, 8, seed, 40, 12);
  EXPECT_NE(wrong, "");
}

/// A planted bug: a process that has two items shows the greater one only; its client inserted the
/// other one before.
struct node_that_shows_half : node {
  using node::node;
  orrery::service::walk_part collect(std::uint64_t limit, std::span<const std::byte> interval,
                                     std::uint64_t version) override {
    orrery::service::walk_part all = node::collect(limit, interval, version);
    if (items_.size() > 1) all.items.erase(all.items.begin(), all.items.begin() + 2 * sizeof(int));
    return all;
  }
};
TEST(walking_histories, show_a_stream_without_what_its_client_has_inserted) {
  std::string wrong;
  for (std::uint32_t seed = 1; seed <= 100 && wrong.empty(); ++seed)
    wrong = try_schedule<node_that_shows_half>(consistency::per_key, 4, seed, 12, 9, nullptr, true, 3);
  EXPECT_NE(wrong, "");
}

}  // namespace walking_chaos_tests
