// SPDX-License-Identifier: Apache-2.0
// Short histories of ordered lists in very many simulated schedules, while ranges split, join and
// move.
#include <orrery/orrery.hpp>
#include <orrery/process/internal/test_world.hpp>
#include <orrery/process/remote_cast.hpp>
#include <orrery/service/internal/test_placed_history.hpp>
#include <orrery/service/internal/test_requests.hpp>
#include <orrery/service/ordered_list.hpp>

#include <algorithm>
#include <chrono>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace list_chaos_tests {

using orrery::consistency;
using orrery::ordered_list;
using orrery::remote;
using orrery::reply_order;
using orrery::service::chained_range;
using orrery::service::list_operation;
using orrery::service::service_root;
using orrery::testing::find_placed_violation;
using orrery::testing::list_event;
using orrery::testing::make_request;
using orrery::testing::note_reply;
using orrery::testing::take_snapshot;
using list = ordered_list<int, int>;

std::uint64_t ticks;  // of the simulated world that runs, on one thread
std::vector<list_event> history;  // NOLINT: the same

struct client_plan {
  list of;
  std::uint32_t id = 0;
  std::uint32_t seed = 0;
  std::uint32_t requests = 20;
  std::uint32_t window = 1;
  consistency level = consistency::per_key;
  std::uint32_t keys = 1;
  std::uint32_t snapshots = 0;
  bool one_sided = false;  // finds wait until nothing is outstanding
};

std::uint64_t one_sided_finds;  // of the simulated worlds that have run

int act(const client_plan& p) {
  std::mt19937 random(p.seed);
  const auto order = random() % 2 == 0 ? reply_order::any : reply_order::as_requested;
  auto s = p.of.open({.window = p.window, .order = p.level, .replies = order, .places = p.level != consistency::total});
  std::vector<list_event> mine;
  std::vector<list_event> snapshots;
  const auto take = [&](const auto& r) {
    r.check();
    list_event& e = mine[r.request];
    note_reply(e, r);
    e.ended = ++ticks;
  };
  for (std::uint32_t i = 0; i < p.requests; ++i) {
    list_event e;
    e.session = p.id;
    e.number = i;
    e.operation = static_cast<list_operation>(random() % (p.level == consistency::total ? 10 : 6));
    if (e.operation != list_operation::erase && random() % 4 == 0) e.operation = list_operation::insert;
    if (p.one_sided && random() % 2 == 0) e.operation = list_operation::find;
    e.key = static_cast<int>(random() % p.keys);
    e.value = static_cast<int>(random() % 4);
    e.expected = static_cast<int>(random() % 4);
    e.begun = ++ticks;
    mine.push_back(e);
    if (p.window > 1 && random() % 8 == 0) s.set_window(static_cast<std::uint32_t>(1 + random() % (2 * p.window)));
    if (p.one_sided && e.operation == list_operation::find) {
      while (const auto r = s.receive()) take(*r);
      mine.back().begun = ++ticks;
      const std::uint64_t before = s.one_sided_finds();
      const auto r = orrery::testing::session_parts::find(s, e.key);
      EXPECT_EQ(r.request, i);
      mine.back().one_sided = s.one_sided_finds() != before;
      take(r);
    } else {
      EXPECT_EQ(make_request(s, e), i);
    }
    if (p.snapshots != 0 && i % (p.requests / p.snapshots) == p.id)
      snapshots.push_back(take_snapshot<list_event>(s, p.id, i, ticks));
    if (random() % 4 == 0)  // in virtual time: answers come while requests are gathered
      orrery::sleep_for(std::chrono::microseconds(random() % 20));
    while (const auto r = s.try_receive()) take(*r);
  }
  while (const auto r = s.receive()) take(*r);
  one_sided_finds += s.one_sided_finds();
  history.insert(history.end(), mine.begin(), mine.end());
  history.insert(history.end(), snapshots.begin(), snapshots.end());
  return 0;
}

// The process by which a handle is known.
struct root_of {
  remote<service_root> root;
  void operator&(remote<service_root>& r) { root = r; }
};

struct stirred {
  int splits = 0;
  int merges = 0;
  int moves = 0;
};

// Splits, joins and moves ranges at random, as the balancing of the service would by what they do.
stirred stir(const list& all, std::uint32_t seed) {
  std::mt19937 random(seed);
  list l = all;
  root_of found;
  l.serialize(found);
  stirred done;
  for (int i = 0; i < 12; ++i) {
    orrery::sleep_for(std::chrono::microseconds(random() % 15));
    const auto directory = found.root->open(list::kind, list::types()).directory;
    const remote<chained_range> range(directory[random() % directory.size()].owner.address());
    const auto load = range->load();
    const std::uint32_t to = random() % orrery::world_pes();
    switch (random() % 4) {
      case 0:
        range->split(1);
        ++done.splits;
        break;
      case 1:
        if (load.successor) done.merges += range->merge_next(load.successor, 1000) ? 1 : 0;
        break;
      case 2:
        done.moves +=
            (load.successor && random() % 4 != 0 ? range->move_next(load.successor, to) : range->move_first(to)) ? 1
                                                                                                                 : 0;
        break;
      default:
        if (random() % 4 == 0) {
          (void)l.balance();
        } else {
          l.tune(2 + random() % 8);
        }
    }
  }
  return done;
}

struct plan {
  consistency level;
  std::uint32_t window;
  std::uint32_t keys = 12;
  std::uint32_t snapshots = 0;
  bool one_sided = false;
};

stirred sum;

std::string run_clients(const plan& p, std::uint32_t seed) {
  history.clear();
  auto l = list::make({.range_items = 3});
  auto stirs = orrery::start_call<&stir>(orrery::pe(seed % 3), l, seed);
  std::vector<orrery::future<int>> ends;
  for (std::uint32_t i = 0; i < 3; ++i)
    ends.push_back(orrery::start_call<&act>(
        orrery::pe(i),
        client_plan{l, i, seed * 3 + i, p.one_sided ? 40U : 20U, p.window, p.level, p.keys, p.snapshots, p.one_sided}));
  for (auto& e : ends) e.get();
  const stirred done = stirs.get();
  sum.splits += done.splits;
  sum.merges += done.merges;
  sum.moves += done.moves;
  l.end();
  return p.level == consistency::total ? orrery::testing::find_total_violation(history)
                                       : find_placed_violation(history, p.level);
}

void explore(const plan& p, std::uint32_t schedules) {
  sum = {};
  if (orrery::scheduler::slowed_down) schedules /= 15;  // a sanitizer sees no more in others
  for (std::uint32_t seed = 1; seed <= schedules; ++seed) {
    // nodes of one machine share memory
    const char* const world = p.one_sided ? "nodes=3" : "machines=3";
    orrery::testing::in_simulation(fmt::format("{},jitter={}us,seed={}", world, 1 + seed % 20, seed),
                                   [&] { EXPECT_EQ(run_clients(p, seed), "") << "seed " << seed; });
    if (::testing::Test::HasFailure()) return;
  }
  const int some = static_cast<int>(schedules / 4);
  EXPECT_GT(sum.splits, some);
  EXPECT_GT(sum.merges, some);
  EXPECT_GT(sum.moves, some);
}

TEST(list_chaos, of_unordered_sessions_is_linearizable_key_by_key) { explore({consistency::unordered, 16}, 1500); }
TEST(list_chaos, of_per_key_sessions_keeps_the_order_of_each_key) { explore({consistency::per_key, 8}, 3000); }
TEST(list_chaos, of_per_key_sessions_with_few_keys_keeps_their_order) { explore({consistency::per_key, 20, 3}, 1500); }
TEST(list_chaos, of_sequential_sessions_keeps_the_order_of_all_keys) { explore({consistency::sequential, 8}, 1500); }
TEST(list_chaos, of_total_sessions_is_what_one_process_would_answer) { explore({consistency::total, 8}, 1000); }
TEST(list_chaos, of_streams_among_writers_shows_all_keys_at_one_moment) {
  explore({consistency::per_key, 6, 12, 4}, 1000);
}
TEST(list_chaos, of_streams_of_sequential_sessions_keeps_the_order_of_all) {
  explore({consistency::sequential, 6, 12, 4}, 500);
}
TEST(list_chaos, of_finds_in_memory_is_linearizable_key_by_key) {
  one_sided_finds = 0;
  explore({.level = consistency::per_key, .window = 6, .one_sided = true}, 1500);
  EXPECT_GT(one_sided_finds, 1000U);
}
TEST(list_chaos, of_finds_in_memory_among_streams_shows_all_keys_at_one_moment) {
  explore({.level = consistency::sequential, .window = 6, .snapshots = 4, .one_sided = true}, 1000);
}

// --- planted bugs: what is checked above finds them ----------------------------------------------

// A value that now and then does not take what it is given.
struct forgetful {
  int value = 0;
  forgetful() = default;
  forgetful(int v) : value(v) {}  // NOLINT: as a number
  forgetful(const forgetful&) = default;
  forgetful& operator=(const forgetful&) = default;
  forgetful& operator=(forgetful&& o) noexcept {
    if (++given % 50 != 0) value = o.value;
    return *this;
  }
  template <class A>
  void serialize(A& a) {
    a & value;
  }
  static inline int given = 0;
};

TEST(list_chaos, finds_an_update_that_is_lost) {
  std::string found;
  forgetful::given = 0;
  orrery::testing::in_simulation("machines=2,seed=1", [&] {
    auto l = ordered_list<int, forgetful>::make();
    auto s = l.open({.window = 4, .places = true});
    std::vector<list_event> h;
    for (std::uint32_t i = 0; i < 200; ++i) {
      list_event e;
      e.number = i;
      e.operation = i % 2 == 0 ? list_operation::insert_or_update : list_operation::find;
      e.key = 1;
      e.value = static_cast<int>(i);
      e.begun = ++ticks;
      if (i % 2 == 0) {
        s.start_insert_or_update(e.key, e.value);
      } else {
        s.start_find(e.key);
      }
      const auto r = s.receive();
      e.done = r->done;
      if (r->value) e.found = r->value->value;
      e.version = r->version;
      e.moment = r->moment;
      e.ended = ++ticks;
      h.push_back(e);
    }
    found = find_placed_violation(h, consistency::unordered);
    l.end();
  });
  EXPECT_NE(found.find("the reply is wrong"), std::string::npos) << found;
}

// Clients that read with a session that does not wait for the requests of the one that writes: x is
// inserted before y.
int write_and_read(const list& l) {
  auto writes = l.open({.window = 8, .places = true});
  auto reads = l.open();
  std::vector<list_event> mine;
  for (int i = 0; i < 10; ++i) {
    list_event e;
    e.number = static_cast<std::uint64_t>(i);
    e.operation = list_operation::insert;
    e.key = i;
    e.value = 1;
    e.begun = ++ticks;
    mine.push_back(e);
    writes.start_insert(i, 1);
  }
  writes.flush();
  list_event s = take_snapshot<list_event>(reads, 0, 9, ticks);
  while (const auto r = writes.receive()) {
    list_event& e = mine[r->request];
    e.done = r->done;
    e.version = r->version;
    e.moment = r->moment;
    e.ended = ++ticks;
  }
  history = mine;
  history.push_back(s);
  return 0;
}
TEST(list_chaos, finds_a_snapshot_without_what_its_client_has_inserted) {
  int found = 0;
  for (int seed = 1; seed <= 20; ++seed)
    orrery::testing::in_simulation(fmt::format("machines=3,jitter=20us,seed={}", seed), [&] {
      auto l = list::make({.pes = {1, 2}, .splits = {5}});
      (void)write_and_read(l);
      if (!find_placed_violation(history, consistency::per_key).empty()) ++found;
      l.end();
    });
  EXPECT_GT(found, 0);
}

}  // namespace list_chaos_tests
