// SPDX-License-Identifier: Apache-2.0
// Being told of the ends of processes, in each kind of world.
#include "../support/four_ways.hpp"

#include <orrery/process/detail/local_waits.hpp>
#include <orrery/process/on_end.hpp>

#include <array>
#include <stdexcept>
#include <utility>

namespace orrery {
namespace ends_tests {

using namespace std::chrono_literals;
using testing::check;
using testing::check_contains;
using testing::thrown;

struct Thing {
  int touch() { return ++n_; }
  int n_ = 0;
};
ORRERY_PROCESS(Thing, touch);

struct Watcher {
  end_monitor watch(remote<Thing> t);
  void watch_function(remote<function> f);
  void told(const ending& e) { all_.push_back(e); }
  void hold() { sleep_for(5ms); }
  std::vector<ending> all() const { return all_; }
  std::vector<ending> all_;
};
ORRERY_PROCESS(Watcher, watch, watch_function, told, hold, all);
end_monitor Watcher::watch(remote<Thing> t) {
  const end_monitor m = on_end<&Watcher::told>(t, this_process<Watcher>());
  detail::await_arrival(t.address());  // the request, before others end it
  return m;
}
bool cancels(end_monitor m) { return m.cancel(); }
void unlinks(remote<Thing> a, remote<Thing> b) { unlink(a, b); }
void Watcher::watch_function(remote<function> f) {
  on_end<&Watcher::told>(f, this_process<Watcher>());
  detail::await_arrival(f.address());
}

/// Tells of itself before its constructor throws.
struct Unborn {
  explicit Unborn(remote<Watcher> w) {
    on_end<&Watcher::told>(this_process<Unborn>(), w);
    detail::await_arrival(w.address());
    throw std::length_error("too long");
  }
};
ORRERY_PROCESS(Unborn);

void until_told(const remote<Watcher>& w, std::size_t n) {
  while (w->all().size() < n) yield();
}

void returns(int) { (void)receive<int>(); }
void throws(int) {
  (void)receive<int>();
  throw std::out_of_range("too far");
}

void futures() {
  for (std::uint32_t p = 0; p < world_pes(); ++p) {
    const auto t = spawn<Thing>(pe(p));
    auto first = end_of(t);
    auto second = end_of(t);
    check(t->touch() == 1 && !first.wait_for(1ms), "it has not ended");
    destroy(t);
    for (auto* f : {&first, &second}) {
      const ending e = f->get();
      check(e.cause == end_cause::destroyed && e.process == t.address() && e.failed(), "destroyed");
    }
    check(end_of(t).get().cause == end_cause::gone, "it was gone before");

    const auto r = spawn(pe(p), returns, 0);
    auto returned = end_of(r);
    const auto x = spawn(pe(p), throws, 0);
    auto threw = end_of(x);
    const auto d = spawn(pe(p), returns, 0);
    auto destroyed = end_of(d);
    send(r, 1);
    send(x, 1);
    destroy(d);
    check(!returned.get().failed(), "a function that returned");
    const ending e = threw.get();
    check(e.cause == end_cause::threw && e.what == "too far", "a function that threw");
    check(destroyed.get().cause == end_cause::destroyed, "a function that was destroyed");
    const ending w = watched_spawn(pe(p), [](int n) { throw std::range_error(std::to_string(n)); }, 7).get();
    check(w.cause == end_cause::threw && w.what == "7" && w.process.pe == p, "a function that is watched");
    check(!watched_spawn(pe(p), [] {}).get().failed(), "one that returns at once");
  }
  thrown<usage_error>("the end of nothing", [] { (void)end_of(remote<Thing>()); });
}

void watchers() {
  for (std::uint32_t p = 0; p < world_pes(); ++p) {
    for (std::uint32_t q = 0; q < world_pes(); ++q) {
      const auto w = spawn<Watcher>(pe(q));
      const auto t = spawn<Thing>(pe(p));
      const auto f = spawn(pe(p), throws, 0);
      w->watch(t);
      w->watch(t);
      w->watch_function(f);
      destroy(t);
      until_told(w, 2);
      send(f, 1);
      until_told(w, 3);
      w->watch(t);
      until_told(w, 4);
      const auto all = w->all();
      check(all[0].cause == end_cause::destroyed && all[1].process == t.address(), "twice destroyed");
      check(all[2].what == "too far" && all[2].process == f.address(), "threw");
      check(all[3].cause == end_cause::gone, "gone");
      thrown<std::length_error>("its constructor", [&] { (void)spawn<Unborn>(pe(p), w); });
      until_told(w, 5);
      const ending unborn = w->all()[4];
      check(unborn.cause == end_cause::threw && unborn.what == "too long", "its constructor threw");
      const auto u = spawn<Thing>(pe(p));
      w->watch(u);
      destroy(w);  // nobody is told
      destroy(u);
      const auto busy = spawn<Watcher>(pe(q));
      const auto v = spawn<Thing>(pe(p));
      busy->watch(v);
      post(busy)->hold();
      auto gone = start_destroy(busy);
      destroy(v);  // it is told behind its end: that is no failed post
      gone.get();
    }
  }
}

void await_gone(const remote<Thing>& t) {
  try {
    for (;;) {
      (void)t->touch();
      yield();
    }
  } catch (const process_gone&) {
  }
}

void links() {
  for (std::uint32_t p = 0; p < world_pes(); ++p) {
    const auto a = spawn<Thing>(pe(p));
    const auto b = spawn<Thing>(pe((p + 1) % world_pes()));
    const auto c = spawn<Thing>(pe(0));
    link(a, b);
    link(b, c);
    for (const auto& t : {a, b, c}) t->touch();
    destroy(c);
    await_gone(b);
    await_gone(a);

    const auto good = spawn(pe(p), returns, 0);
    const auto bad = spawn(pe(p), throws, 0);
    const auto d = spawn<Thing>(pe(0));
    link(good, d);
    link(d, bad);
    auto end = end_of(good);
    send(good, 1);
    (void)end.get();
    check(d->touch() == 1, "a function that returned takes nobody along");
    send(bad, 1);
    await_gone(d);
  }
}

void cancelled() {
  for (std::uint32_t p = 0; p < world_pes(); ++p) {
    for (std::uint32_t q = 0; q < world_pes(); ++q) {
      const auto w = spawn<Watcher>(pe(q));
      const auto t = spawn<Thing>(pe(p));
      const auto first = w->watch(t);
      const auto kept = w->watch(t);
      const auto own = on_end<&Watcher::told>(t, w);  // set here, and taken back at once
      check(own.cancel() && !own.cancel(), "one that was set here");
      const auto another = w->watch(t);
      check(call<&cancels>(pe((p + 1) % world_pes()), first), "one that was set elsewhere, from anywhere");
      check(another.cancel() && !first.cancel(), "it is taken back once");
      destroy(t);
      until_told(w, 1);
      check(!kept.cancel(), "it was told");
      (void)end_of(t).get();
      check(w->all().size() == 1 && w->all()[0].process == t.address(), "only one is told");
      check(!on_end<&Watcher::told>(t, w).cancel(), "it was gone before");
      until_told(w, 2);

      const auto a = spawn<Thing>(pe(p));
      const auto b = spawn<Thing>(pe(q));
      const auto c = spawn<Thing>(pe(q));
      link(a, b);
      link(b, a);
      link(a, c);
      unlink(b, a);
      unlink(b, a);
      unlink(a, spawn<Thing>(pe(q)));
      auto end = end_of(c);
      destroy(a);
      (void)end.get();
      check(b->touch() == 1, "it was not linked any more");
      destroy(b);
    }
  }
  thrown<usage_error>("no monitor", [] { (void)end_monitor().cancel(); });
  thrown<usage_error>("no link", [] { unlink(remote<Thing>(), remote<Thing>()); });
  const auto alone = spawn<Thing>(here());
  for (const auto& [a, b] : {std::pair(alone, remote<Thing>()), std::pair(remote<Thing>(), alone)})
    check_contains(thrown<usage_error>("a link with nothing", [&] { link(a, b); }), "link");
  const auto watcher = spawn<Watcher>(here());
  thrown<usage_error>("the end of nothing", [&] { on_end<&Watcher::told>(remote<Thing>(), watcher); });
  thrown<usage_error>("nobody to tell", [] { on_end<&Watcher::told>(spawn<Thing>(here()), remote<Watcher>()); });
}

void lost() {
  const auto last = node(world_nodes() - 1);
  const auto t = spawn<Thing>(last);
  auto end = end_of(t);
  const auto w = spawn<Watcher>(pe(0));
  const auto told = w->watch(t);
  const auto taken_back = w->watch(t);
  const auto linked = spawn<Thing>(pe(0));
  const auto free = spawn<Thing>(pe(0));
  link(t, linked);
  link(free, t);
  unlink(t, free);
  check(taken_back.cancel(), "a watch of another node is taken back");
  linked->touch();
  (void)end_of(t);  // what was sent before has come
  post_call<&testing::kill_own_node>(last);
  check(end.get().cause == end_cause::node_lost, "a lost node");
  until_told(w, 1);
  check_contains(w->all()[0].what, "node");
  await_gone(linked);
  check(end_of(t).get().cause == end_cause::node_lost, "a node that is lost");
  check(!told.cancel() && w->all().size() == 1, "the loss was told, once");
  check(free->touch() == 1, "not linked any more");
  unlink(linked, t);
}

void spins() {
  const auto until = std::chrono::steady_clock::now() + 100ms;
  while (std::chrono::steady_clock::now() < until) {
  }
}

// What is taken back stays so if the node is lost then. Its PE has much to do before, and behind.
void lost_when_taken_back() {
  const auto t = spawn<Thing>(pe(world_pes() - world_pes() / world_nodes()));
  const auto w = spawn<Watcher>(pe(0));
  const auto taken_back = w->watch(t);
  const auto kept = w->watch(t);
  post_call<&spins>(pe(t.address().pe));
  auto cancelled = start_call<&cancels>(pe(0), taken_back);
  yield();
  post_call<&spins>(pe(t.address().pe));
  check(cancelled.get(), "a watch is taken back");
  post_call<&testing::kill_own_node>(pe(world_pes() - 1));
  check(end_of(t).get().cause == end_cause::node_lost, "a lost node");
  until_told(w, 1);
  check(!kept.cancel() && w->all().size() == 1, "one is told");
}

void lost_when_unlinked() {
  const auto t = spawn<Thing>(pe(world_pes() - world_pes() / world_nodes()));
  const auto linked = spawn<Thing>(pe(0));
  link(t, linked);
  post_call<&spins>(pe(t.address().pe));
  auto unlinked = start_call<&unlinks>(pe(0), t, linked);
  yield();
  post_call<&spins>(pe(t.address().pe));
  unlinked.get();
  post_call<&testing::kill_own_node>(pe(world_pes() - 1));
  check(end_of(t).get().cause == end_cause::node_lost, "a lost node");
  for (int i = 0; i < 100; ++i) yield();
  check(linked->touch() == 1, "not linked any more");
}

std::size_t watches_here() { return detail::local_waits::of(detail::here_pe()).ends().count(); }

void watches_from_there(remote<Thing> t) {
  on_end<&Watcher::told>(t, spawn<Watcher>(here()));
  (void)spawn(here(), [](remote<Thing> of) { (void)end_of(of).get(); }, t);
  yield();
  detail::await_arrival(t.address());
}

// What lives long has nothing of those that have watched it and crashed.
void lost_watchers() {
  const auto t = spawn<Thing>(pe(0));
  const auto others = call<&watches_here>(pe(0));
  call<&watches_from_there>(node(world_nodes() - 1), t);
  check(call<&watches_here>(pe(0)) == others + 2, "two watches");
  post_call<&testing::kill_own_node>(node(world_nodes() - 1));
  while (call<&watches_here>(pe(0)) != others) sleep_for(1ms);
  check(t->touch() == 1, "it lives on");
}

/// Takes its watches back when it ends.
struct Tidy {
  Tidy(remote<Thing> t, remote<Watcher> w) : own(on_end<&Watcher::told>(t, w)), of_another(w->watch(t)) {}
  ~Tidy() {
    own.cancel();
    of_another.cancel();
  }
  end_monitor own;
  end_monitor of_another;
};
ORRERY_PROCESS(Tidy);

void stays() {  // until the program ends
  for (std::uint32_t p = 0; p < world_pes(); ++p) {
    const auto other = spawn<Thing>(pe(world_pes() - 1 - p));
    (void)spawn<Tidy>(pe(p), other, spawn<Watcher>(pe(0)));
    destroy(spawn<Tidy>(pe(p), other, spawn<Watcher>(pe(0))));
  }
  const auto t = spawn<Thing>(pe(world_pes() - 1));
  const auto w = spawn<Watcher>(pe(0));
  w->watch(t);
  spawn_here([t] {
    try {
      (void)end_of(t).get();
    } catch (const stopped&) {
    }
  });
  const auto f = spawn(pe(0), returns, 0);
  w->watch_function(f);
  yield();
}

struct Busy {
  void rest() { sleep_for(1000s); }
  void take(const std::array<char, 1000>&) {}
};
ORRERY_PROCESS(Busy, rest, take);

// What is to be destroyed has no room for that when the program ends.
void full_at_the_end() {
  const auto busy = spawn<Busy>(here());
  const auto t = spawn<Thing>(here());
  link(t, busy);
  post(busy)->rest();
  yield();
  const std::array<char, 1000> much{};
  while (try_post(busy)->take(much)) {
  }
  destroy(t);
  for (int i = 0; i < 10; ++i) yield();
}

using ends = testing::in_each_way;
INSTANTIATE_IN_FOUR_WAYS(ends);
TEST_P(ends, are_futures) { EXPECT_EQ(wrong_in("futures"), ""); }
TEST_P(ends, are_told_to_watchers) { EXPECT_EQ(wrong_in("watchers"), ""); }
TEST_P(ends, of_one_are_those_of_what_is_linked_with_it) { EXPECT_EQ(wrong_in("links"), ""); }
TEST_P(ends, are_not_told_where_that_was_taken_back) { EXPECT_EQ(wrong_in("cancelled"), ""); }
TEST_P(ends, of_the_program_are_told_to_nobody) { EXPECT_EQ(wrong_in("stays"), ""); }
TEST(links_at_the_end, wait_for_room_no_longer_than_the_program) {
  const std::string said = testing::outcome_of({"--scenario=full_at_the_end", "--orrery-pes=1"});
  EXPECT_TRUE(said.ends_with("good")) << said;
}
TEST(ends_of_a_lost_node, are_told) { EXPECT_EQ(testing::wrong_where_a_node_is_lost("lost_of_ends"), ""); }
TEST(ends_that_a_lost_node_has_watched, are_kept_for_nobody) {
  EXPECT_EQ(testing::wrong_where_a_node_is_lost("lost_watchers"), "");
}
TEST(ends_of_a_lost_node, are_not_told_where_that_was_taken_back) {
  EXPECT_EQ(testing::wrong_where_a_node_is_lost("lost_when_taken_back"), "");
  EXPECT_EQ(testing::wrong_where_a_node_is_lost("lost_when_unlinked"), "");
}

const orrery::testing::scenarios_of_file of_this({{"futures", futures},
                                                  {"watchers", watchers},
                                                  {"links", links},
                                                  {"cancelled", cancelled},
                                                  {"lost_of_ends", lost},
                                                  {"lost_when_taken_back", lost_when_taken_back},
                                                  {"lost_when_unlinked", lost_when_unlinked},
                                                  {"lost_watchers", lost_watchers},
                                                  {"full_at_the_end", full_at_the_end},
                                                  {"stays", stays}});

}  // namespace ends_tests
}  // namespace orrery
