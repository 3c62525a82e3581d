// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>
#include <orrery/process/internal/test_world.hpp>
#include <orrery/service/internal/test_linearize.hpp>
#include <orrery/service/work_queue.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <compare>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace work_queue_tests {

using orrery::work_queue;
using orrery::testing::in_simulation;
using orrery::testing::in_world;
using orrery::testing::never;
using texts = work_queue<std::string>;
using numbers = work_queue<int>;

TEST(work_queue, hands_out_by_priority_and_then_by_age) {
  in_world(2, [] {
    auto q = texts::make(orrery::pe(1));
    auto s = q.open();
    EXPECT_EQ(s.put(1, "a"), 0U);
    EXPECT_EQ(s.put(7, "b"), 1U);
    EXPECT_EQ(s.put(-3, "c"), 2U);
    EXPECT_EQ(s.put(7, "d"), 3U);
    std::string order;
    while (const auto w = s.try_take()) {
      order += w->item;
      EXPECT_TRUE(s.done(*w));
      EXPECT_FALSE(s.done(*w)) << "it is done already";
    }
    EXPECT_EQ(order, "bdac");
    EXPECT_EQ(q.counts(), (orrery::service::work_counts{0, 0, 4, 0}));
    q.end();
  });
}

TEST(work_queue, gives_a_worker_that_waits_the_next_item) {
  in_world(2, [] {
    auto q = numbers::make();
    auto got = orrery::start_call<+[](numbers q) {
      auto s = q.open();
      const auto w = s.take();
      return w && s.done(*w) ? w->item : -1;
    }>(orrery::pe(1), q);
    auto s = q.open();
    s.put(0, 42);
    EXPECT_EQ(got.get(), 42);
    q.end();
  });
}

TEST(work_queue, ends_the_waits_of_workers_when_all_is_done) {
  in_world(2, [] {
    auto q = numbers::make();
    auto s = q.open();
    for (int i = 0; i < 3; ++i) s.put(0, i);
    const auto mine = s.take_some(2);
    EXPECT_EQ(mine.size(), 2U);
    auto all_of_another = orrery::start_call<+[](numbers q) {
      auto s = q.open();
      int n = 0;
      for (; const auto w = s.take(); ++n) s.done(*w);
      return n;
    }>(orrery::pe(1), q);
    q.close();
    EXPECT_EQ(s.put(0, 9), std::nullopt) << "it is closed";
    EXPECT_TRUE(s.done(mine[0]));
    EXPECT_TRUE(s.give_back(mine[1], 5));
    EXPECT_EQ(all_of_another.get(), 2);
    EXPECT_EQ(s.take(), std::nullopt);
    q.end();
  });
}

TEST(work_queue, gives_up_a_wait_after_its_time_and_loses_no_item) {
  in_simulation("machines=2", [] {
    auto q = numbers::make(orrery::pe(1));
    auto s = q.open();
    EXPECT_FALSE(s.take_for(std::chrono::milliseconds(1)));
    s.put(0, 1);
    EXPECT_EQ(s.take_for(std::chrono::milliseconds(1))->item, 1);
    q.end();
  });
}

TEST(work_queue, takes_back_what_a_worker_had_that_threw) {
  in_world(2, [] {
    auto q = texts::make();
    auto s = q.open();
    for (const char* const t : {"a", "b", "c"}) s.put(0, t);
    auto worker = orrery::start_call<+[](texts q) {
      auto s = q.open();
      const auto in_hand = s.take_some(2);
      throw std::runtime_error(in_hand[0].item + in_hand[1].item);
    }>(orrery::pe(1), q);
    EXPECT_THROW(worker.get(), std::runtime_error);
    q.close();
    std::string order;
    while (const auto w = s.take()) {
      EXPECT_EQ(w->times, w->item == "c" ? 1U : 2U) << w->item;
      order += w->item;
      s.done(*w);
    }
    std::ranges::sort(order);
    EXPECT_EQ(order, "abc");
    EXPECT_EQ(q.counts().came_back, 2U);
    q.end();
  });
}

TEST(work_queue, refuses_what_a_worker_says_of_an_item_that_another_one_has) {
  in_world(1, [] {
    auto q = numbers::make();
    auto s = q.open();
    auto other = q.open();
    s.put(0, 1);
    const auto first = s.take();
    EXPECT_TRUE(s.give_back(*first));
    const auto second = other.take();
    EXPECT_EQ(second->times, 2U);
    EXPECT_FALSE(s.done(*first));
    EXPECT_FALSE(s.give_back(*first));
    EXPECT_TRUE(other.done(*second));
    q.end();
  });
}

TEST(work_queue, hears_only_the_session_that_has_an_item) {
  in_world(2, [] {
    auto q = numbers::make(orrery::pe(1));
    auto s = q.open();
    auto other = q.open();
    s.put(0, 1);
    const auto mine = s.take();
    EXPECT_FALSE(other.done(*mine));
    EXPECT_FALSE(other.give_back(*mine, 7));
    EXPECT_EQ(q.counts(), (orrery::service::work_counts{0, 1, 0, 0}));
    EXPECT_TRUE(s.done(*mine));
    q.end();
  });
}

void wait_for_work(numbers q) {
  auto s = q.open();
  while (const auto w = s.take()) s.done(*w);
}
TEST(work_queue, lets_a_program_end_while_workers_wait) {
  const auto body = [] {
    for (std::uint32_t home = 0; home < orrery::world_pes(); ++home) {
      const auto q = numbers::make(orrery::pe(home));
      for (std::uint32_t p = 0; p < orrery::world_pes(); ++p) orrery::spawn(orrery::pe(p), wait_for_work, q);
    }
    orrery::sleep_for(std::chrono::milliseconds(1));
  };
  in_world(2, body);
  for (const char* world : {"machines=3,jitter=5us", "machines=3,carriers=on,jitter=5us"}) in_simulation(world, body);
}

TEST(work_queue, ends_while_workers_wait) {
  in_world(2, [] {
    auto q = numbers::make();
    auto waits = orrery::start_call<+[](numbers q) {
      auto s = q.open();
      return s.take().has_value();
    }>(orrery::pe(1), q);
    const auto copy = q;
    auto s = q.open();
    q.end();
    try {
      EXPECT_FALSE(waits.get());
    } catch (const orrery::process_gone&) {  // it came too late
    }
    EXPECT_THROW((void)s.try_take(), orrery::process_gone);
    EXPECT_THROW((void)copy.open(), orrery::process_gone);
    EXPECT_THROW((void)work_queue<std::string>().open(), orrery::usage_error);
  });
}

// --- histories -----------------------------------------------------------------------------------

enum class act : std::uint8_t { put, take, try_take, done, give_back, die };

struct event {
  std::uint32_t worker = 0;
  std::uint64_t number = 0;
  act what = act::put;
  std::int32_t priority = 0;
  std::uint64_t id = 0;
  std::uint32_t times = 0;
  std::uint64_t begun = 0;
  std::uint64_t ended = never;
  bool good = false;  // of take: there was one
};

struct item {
  std::int32_t priority = 0;
  std::uint32_t times = 0;
  int worker = -1;  // who has it
  auto operator<=>(const item&) const = default;
};
struct contents {
  std::uint64_t next = 0;
  std::map<std::uint64_t, item> items;
  std::map<std::uint32_t, bool> dead;
  auto operator<=>(const contents&) const = default;
};

// The model of a work queue: does the event to the contents; false if it would have had another
// reply.
bool happen(const event& e, contents& c) {
  const bool known = e.ended != never;
  switch (e.what) {
    case act::put:
      if (known && e.id != c.next) return false;
      c.items[c.next++] = {e.priority, 0, -1};
      return true;
    case act::take:
    case act::try_take: {
      if (c.dead[e.worker]) return !known;
      auto best = c.items.end();
      for (auto i = c.items.begin(); i != c.items.end(); ++i)
        if (i->second.worker < 0 && (best == c.items.end() || i->second.priority > best->second.priority)) best = i;
      if (best == c.items.end()) return !known || (e.what == act::try_take && !e.good);
      best->second.worker = static_cast<int>(e.worker);
      ++best->second.times;
      return !known || (e.good && e.id == best->first && e.times == best->second.times);
    }
    case act::done:
    case act::give_back: {
      const auto at = c.items.find(e.id);
      const bool mine =
          at != c.items.end() && at->second.worker == static_cast<int>(e.worker) && at->second.times == e.times;
      if (mine && e.what == act::done)
        c.items.erase(at);
      else if (mine)
        at->second = {e.priority, e.times, -1};
      return !known || e.good == mine;
    }
    default:
      c.dead[e.worker] = true;
      for (auto& [id, i] : c.items)
        if (i.worker == static_cast<int>(e.worker)) i.worker = -1;
      return true;
  }
}
// A client that dies has done before what was answered before.
bool before(const event& a, const event& b) {
  return a.worker == b.worker && b.what == act::die && a.what != act::die && a.ended != never;
}
std::string find_violation(const std::vector<event>& h) {
  if (orrery::testing::is_linearizable(h, contents{}, before, happen)) return {};
  static constexpr const char* names[] = {"put", "take", "try_take", "done", "give_back", "die"};
  std::string text;
  for (const event& e : h)
    text += fmt::format("worker {}: {} priority {} id {} times {} [{}, {}] -> {}\n", e.worker,
                        names[static_cast<int>(e.what)], e.priority, e.id, e.times, e.begun,
                        e.ended == never ? "-" : std::to_string(e.ended), e.good);
  return text;
}

std::atomic<std::uint64_t> ticks;
std::mutex guard;
std::vector<event> history;  // NOLINT: of the test that runs
orrery::work<int> last_taken;  // NOLINT: by whoever it was

// Where an event is: written at its beginning, as its worker may not live to see its end.
std::size_t begin(event e) {
  const std::scoped_lock lock(guard);
  e.begun = ++ticks;
  history.push_back(e);
  return history.size() - 1;
}
template <class F>
void end(std::size_t at, F write) {
  const std::scoped_lock lock(guard);
  write(history[at]);
  history[at].ended = ++ticks;
}

struct plan {
  numbers of;
  std::uint32_t worker = 0;
  std::uint32_t seed = 0;
  std::uint32_t acts = 0;
  bool simulated = false;
};

// Random acts one at a time; sessions of dead workers are followed by others with another number.
int work_at_random(const plan& p) {
  std::mt19937 random(p.seed);
  std::uint32_t worker = p.worker;
  std::unique_ptr<numbers::session> s;
  std::vector<orrery::work<int>> in_hand;
  for (std::uint32_t i = 0; i < p.acts; ++i) {
    if (!s) s.reset(new numbers::session(p.of.open()));
    if (p.simulated) orrery::sleep_for(std::chrono::microseconds(random() % 20));
    event e;
    e.worker = worker;
    e.priority = static_cast<int>(random() % 3);
    const auto which = random() % 8;
    if (which < 3) {
      e.what = act::put;
      const auto at = begin(e);
      const auto id = s->put(e.priority, 1);
      end(at, [&](event& x) { x.id = *id, x.good = true; });
    } else if (which < 5) {
      e.what = act::try_take;
      const auto at = begin(e);
      const auto w = s->try_take();
      end(at, [&](event& x) {
        x.good = w.has_value();
        if (w) x.id = w->id, x.times = w->times;
      });
      if (w) {
        in_hand.push_back(*w);
        const std::scoped_lock lock(guard);
        last_taken = *w;
      }
    } else if (which == 5 && random() % 2 == 0) {  // of an item that another one may have
      orrery::work<int> w;
      {
        const std::scoped_lock lock(guard);
        w = last_taken;
      }
      if (w.times == 0) continue;
      e.what = act::done;
      e.id = w.id;
      e.times = w.times;
      const auto at = begin(e);
      const bool good = s->done(w);
      end(at, [&](event& x) { x.good = good; });
      if (good) std::erase_if(in_hand, [&](const auto& mine) { return mine.id == w.id; });
    } else if (which < 7 && !in_hand.empty()) {
      const auto w = in_hand.back();
      in_hand.pop_back();
      e.what = random() % 3 == 0 ? act::give_back : act::done;
      e.id = w.id;
      e.times = w.times;
      const auto at = begin(e);
      const bool good = e.what == act::done ? s->done(w) : s->give_back(w, e.priority);
      end(at, [&](event& x) { x.good = good; });
    } else if (random() % 2 == 0) {
      e.what = act::die;
      (void)begin(e);
      s.reset();
      in_hand.clear();
      worker += 10;
    }
  }
  (void)begin({.worker = worker, .what = act::die});
  s.reset();
  return 0;
}

// Workers on all PEs; then one takes what is left. Returns what the history contradicts.
std::string run_workers(std::uint32_t seed, bool simulated, bool loses) {
  history.clear();
  last_taken = {};
  auto q = numbers::make();
  std::vector<orrery::future<int>> ends;
  for (std::uint32_t i = 0; i < 3; ++i)
    ends.push_back(orrery::start_call<&work_at_random>(orrery::pe(i % orrery::world_pes()),
                                                       plan{q, i, seed * 3 + i, 10, simulated}));
  for (std::uint32_t i = 0; i < 3; ++i) {
    try {
      ends[i].get();
    } catch (const orrery::node_lost&) {
      EXPECT_TRUE(loses);
      for (std::uint32_t w = i; w < 100; w += 10)
        history[begin({.worker = w, .what = act::die})].begun = 0;  // nobody knows when
    }
  }
  q.close();
  {
    auto s = q.open();
    for (;;) {
      const auto at = begin({.worker = 9, .what = act::take});
      const auto w = s.take();
      if (!w) break;
      end(at, [&](event& x) { x.good = true, x.id = w->id, x.times = w->times; });
      const auto done = begin({.worker = 9, .what = act::done, .id = w->id, .times = w->times});
      EXPECT_TRUE(s.done(*w));
      end(done, [](event& x) { x.good = true; });
    }
  }
  const auto counts = q.counts();
  EXPECT_EQ(counts.waiting, 0U);
  EXPECT_EQ(counts.handed_out, 0U);
  q.end();
  // Take the last one, which found nothing, and deaths that nobody could have died out of the
  // history.
  std::erase_if(history, [](const event& e) {
    return (e.worker == 9 && e.what == act::take && e.ended == never) ||
           (e.what == act::die &&
            std::ranges::none_of(history, [&](const event& o) { return o.worker == e.worker && o.what != act::die; }));
  });
  return find_violation(history);
}

TEST(histories, of_work_queues_hand_out_each_item_at_least_once_in_order) {
  for (std::uint32_t seed = 1; seed <= 150; ++seed) {
    in_simulation(fmt::format("machines=3,jitter={}us,seed={}", 1 + seed % 20, seed),
                  [&] { EXPECT_EQ(run_workers(seed, true, false), "") << "seed " << seed; });
    if (::testing::Test::HasFailure()) return;
  }
}
TEST(histories, of_work_queues_whose_workers_are_lost_with_their_node_have_all_items) {
  const orrery::testing::leaks_expected of_the_lost_node;
  for (std::uint32_t seed = 1; seed <= 100; ++seed) {
    in_simulation(
        fmt::format("machines=3,jitter={}us,seed={},lose=1@{}us,detect=20us", 1 + seed % 20, seed, 40 + seed * 7 % 300),
        [&] { EXPECT_EQ(run_workers(seed, true, true), "") << "seed " << seed; });
    if (::testing::Test::HasFailure()) return;
  }
}
TEST(histories, of_work_queues_on_threads_hand_out_in_order) {
  for (std::uint32_t seed = 1; seed <= 20; ++seed) in_world(3, [&] { EXPECT_EQ(run_workers(seed, false, false), ""); });
}

event made(std::uint32_t worker, act what, std::uint64_t begun, std::uint64_t ended, std::uint64_t id, bool good,
           std::int32_t priority = 0, std::uint32_t times = 1) {
  return {worker, 0, what, priority, id, times, begun, ended, good};
}
TEST(work_history, without_an_item_of_a_living_worker_coming_back_is_asked_for) {
  std::vector<event> h{made(0, act::put, 1, 2, 0, true), made(0, act::try_take, 3, 4, 0, true),
                       made(1, act::try_take, 5, 6, 0, true, 0, 2)};
  EXPECT_NE(find_violation(h), "") << "handed out twice, and nobody died";
  h.push_back(made(0, act::die, 5, never, 0, false));
  EXPECT_EQ(find_violation(h), "");
}
TEST(work_history, with_an_overtaken_priority_is_rejected) {
  const std::vector<event> h{made(0, act::put, 1, 2, 0, true, 1), made(0, act::put, 3, 4, 1, true, 2),
                             made(1, act::try_take, 5, 6, 0, true)};
  EXPECT_NE(find_violation(h), "");
}
TEST(work_history, with_a_lost_item_is_rejected) {
  const std::vector<event> h{made(0, act::put, 1, 2, 0, true), made(1, act::try_take, 3, 4, 0, false)};
  EXPECT_NE(find_violation(h), "");
}

}  // namespace work_queue_tests
