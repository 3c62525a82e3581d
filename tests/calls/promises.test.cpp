// SPDX-License-Identifier: Apache-2.0
// Promises, and methods that return a future, in each kind of world.
#include "../support/four_ways.hpp"

#include <orrery/array/array.hpp>
#include <orrery/process/task.hpp>

#include <deque>
#include <functional>
#include <memory>
#include <stdexcept>

namespace orrery {
namespace promises_tests {

using testing::check;
using testing::check_contains;
using testing::outcome_of;
using testing::thrown;

/// Answers when it is told to.
struct Desk {
  future<int> next() { return waiting_.emplace_back().get_future(); }
  void put(int x) {
    waiting_.front().set_value(x);
    waiting_.pop_front();
  }
  void refuse() {
    waiting_.front().set_exception(std::make_exception_ptr(std::out_of_range("no more")));
    waiting_.pop_front();
  }
  void lose() { waiting_.pop_front(); }
  std::size_t asked() const { return waiting_.size(); }

  future<void> open() { return opened_.emplace_back().get_future(); }
  future<std::vector<int>> all(std::size_t n) {
    promise<std::vector<int>> p;
    p.set_value(n, 7);
    return p.get_future();
  }
  future<std::unique_ptr<std::string>> text() { return texts_.emplace_back().get_future(); }
  void let_in() {
    for (auto& p : std::exchange(opened_, {})) p.set_value();
    for (auto& p : std::exchange(texts_, {})) p.set_value(std::make_unique<std::string>("text"));
  }

 private:
  std::deque<promise<int>> waiting_;
  std::vector<promise<void>> opened_;
  std::vector<promise<std::unique_ptr<std::string>>> texts_;
};
ORRERY_PROCESS(Desk, next, put, refuse, lose, asked, open, all, text, let_in);

void await_asked(const remote<Desk>& d, std::size_t n) {
  while (d->asked() != n) yield();
}

int call_next(remote<Desk> d) { return d->next(); }

void answered_later() {
  for (std::uint32_t p = 0; p < world_pes(); ++p) {
    const auto desk = spawn<Desk>(pe(p));
    auto first = start(desk)->next();
    auto second = start(desk)->next();
    for (std::uint32_t from = 0; from < world_pes(); ++from) {
      auto called = start_call<&call_next>(pe(from), desk);  // waits there, and the desk takes what is below
      await_asked(desk, 3);
      desk->put(10);
      desk->put(20);
      check(first.get() == 10 && second.get() == 20, "two answers");
      first = start(desk)->next();
      second = start(desk)->next();
      desk->put(30);
      check(called.get() == 30, "a call");
    }
    auto opened = start(desk)->open();
    auto text = start(desk)->text();
    check(desk->all(3) == std::vector<int>(3, 7), "a future that is ready");
    check(start(desk)->all(100'000).get() == std::vector<int>(100'000, 7), "a large one");
    check(!opened.wait_for(std::chrono::milliseconds(1)), "open before it is let in");
    desk->let_in();
    opened.get();
    check(*text.get() == "text", "what can only be moved");
    post(desk)->next();  // nobody wants it
    desk->put(0);
    desk->put(0);
    desk->put(0);
    check(first.get() == 0 && second.get() == 0, "the last ones");
    destroy(desk);
  }
}

void exceptions() {
  for (std::uint32_t p = 0; p < world_pes(); ++p) {
    const auto desk = spawn<Desk>(pe(p));
    auto refused = start(desk)->next();
    auto lost = start(desk)->next();
    auto left = start(desk)->next();
    auto called = start_call<&call_next>(here(), desk);
    await_asked(desk, 4);
    desk->refuse();
    desk->lose();
    check(thrown<std::out_of_range>("refused", [&] { refused.get(); }) == "no more", "the text of an exception");
    check_contains(thrown<broken_promise>("lost_of_promises", [&] { lost.get(); }), "Desk::next made at");
    destroy(desk);
    check_contains(thrown<broken_promise>("destroyed", [&] { left.get(); }), "was the process that had it destroyed");
    thrown<broken_promise>("called", [&] { called.get(); });
  }
}

/// Has others answer.
struct Front {
  explicit Front(remote<Desk> d) : desk(d) {}
  future<int> next() { return start(desk)->next(); }
  future<std::string> text() {
    return start(desk)->next().then([](int n) { return std::to_string(n); });
  }
  future<int> twice() {  // a future of a future
    return start(desk)->next().then(
        [d = desk](int n) { return start(d)->next().then([n](int m) { return 100 * n + m; }); });
  }
  int busy() const { return 1; }
  remote<Desk> desk;
};
ORRERY_PROCESS(Front, next, text, twice, busy);

future<int> asks(remote<Desk> d) { return start(d)->next(); }

void delegation() {
  const auto desk = spawn<Desk>(pe(world_pes() - 1));
  for (std::uint32_t p = 0; p < world_pes(); ++p) {
    const auto front = spawn<Front>(pe(p), desk);
    auto n = start(front)->next();
    await_asked(desk, 1);
    auto s = start(front)->text();
    await_asked(desk, 2);
    auto t = start(front)->twice();
    await_asked(desk, 3);
    auto f = start_call<&asks>(pe(p), desk);
    await_asked(desk, 4);
    check(front->busy() == 1, "it is free while others answer for it");
    destroy(front);  // even that: the answer is on its way
    for (int i = 1; i <= 4; ++i) desk->put(i);
    await_asked(desk, 1);
    desk->put(5);
    check(n.get() == 1 && s.get() == "2" && t.get() == 305 && f.get() == 4, "answers of others");
  }
  auto f = start_call<&asks>(pe(0), desk);
  await_asked(desk, 1);
  desk->lose();
  thrown<broken_promise>("a broken promise of another one", [&] { f.get(); });
}

void unwrapping() {
  const auto desk = spawn<Desk>(pe(world_pes() - 1));
  bool ran = false;
  auto f = start(desk)->next().then([&](int n) {
    ran = true;
    return start(desk)->next().then([n](int m) { return n - m; });
  });
  static_assert(std::is_same_v<decltype(f), future<int>>);
  auto v = start(desk)->open().then([&] { return start(desk)->open(); });
  static_assert(std::is_same_v<decltype(v), future<void>>);
  desk->put(7);
  await_asked(desk, 1);
  check(ran && !f.ready(), "then, in the middle");
  desk->put(3);
  check(f.get() == 4, "then, unwrapped");
  desk->let_in();
  while (!v.wait_for(std::chrono::milliseconds(1))) desk->let_in();
  v.get();
  auto e = start(desk)->all(1).then([](const std::vector<int>&) -> future<int> { throw std::range_error("in then"); });
  check(thrown<std::range_error>("then", [&] { e.get(); }) == "in then", "what then throws");
  auto g = start(desk)->all(1).then([](const std::vector<int>&) { return future<int>(); });
  thrown<usage_error>("an empty future", [&] { g.get(); });
  auto h = start(desk)->all(1).then([&](const std::vector<int>&) { return start(desk)->next(); });
  await_asked(desk, 1);
  desk->lose();
  thrown<broken_promise>("in the inner one", [&] { h.get(); });
}

void sharing() {
  const auto desk = spawn<Desk>(pe(world_pes() - 1));
  const shared_future<int> all(start(desk)->next());
  const auto me = this_process<function>();
  for (int i = 0; i < 5; ++i) spawn_here([all, me, i] { send(me, all.get() + i); });
  auto doubled = all.then([](int n) { return 2 * n; });
  auto later = all.then([&](int) { return start(desk)->next(); });
  for (int i = 0; i < 2; ++i)
    spawn_here([all, me] {
      check(!all.wait_for(std::chrono::milliseconds(1)), "there is nothing yet");
      send(me, 0);
    });
  check(!all.ready() && !all.wait_for(std::chrono::milliseconds(1)), "there is nothing yet");
  await_asked(desk, 1);
  for (int i = 0; i < 2; ++i) check(receive<int>() == 0, "both have given up");
  desk->put(10);
  int sum = 0;
  for (int i = 0; i < 5; ++i) sum += receive<int>();
  check(sum == 60, "each of those that wait has it");
  check(doubled.get() == 20 && all.get() == 10 && all.ready(), "and what follows, and who comes later");
  check(all.then([](const int& n) { return n; }).get() == 10, "then of what is there");
  await_asked(desk, 1);
  desk->put(1);
  check(later.get() == 1, "then, unwrapped");

  const shared_future<int> fails(start(desk)->next());
  auto follows = fails.then([](int) {});
  desk->refuse();
  for (int i = 0; i < 2; ++i) thrown<std::out_of_range>("shared", [&] { fails.get(); });
  thrown<std::out_of_range>("follows", [&] { follows.get(); });
  const shared_future<void> opened(start(desk)->open());
  desk->let_in();
  opened.get();
  opened.get();
  thrown<usage_error>("an empty one", [] { shared_future<int>().get(); });
  thrown<usage_error>("of an empty one", [] { (void)shared_future<int>(future<int>()); });
}

struct Member : member<Member> {
  future<int> rank_later() {
    waiting_.emplace_back();
    return waiting_.back().get_future();
  }
  future<void> done_later() { return done_.emplace_back().get_future(); }
  void answer() {
    for (auto& p : std::exchange(waiting_, {})) p.set_value(static_cast<int>(rank()));
    for (auto& p : std::exchange(done_, {})) p.set_value();
  }
  void fail() { waiting_.clear(); }
  std::size_t asked() const { return waiting_.size() + done_.size(); }
  std::vector<promise<int>> waiting_;
  std::vector<promise<void>> done_;
};
ORRERY_PROCESS(Member, rank_later, done_later, answer, fail, asked);

void groups() {
  const auto g = spawn_group<Member>(everywhere(), 7);
  const auto all_asked = [&](std::size_t n) {
    while (g->asked() != std::vector<std::size_t>(7, n)) yield();
  };
  auto ranks = start(g)->rank_later();
  auto sum = g.start_reduce<&Member::rank_later>(std::plus{});
  auto done = start(g)->done_later();
  all_asked(3);
  g->answer();
  check(ranks.get() == std::vector{0, 1, 2, 3, 4, 5, 6} && sum.get() == 21, "of each member");
  done.get();
  auto broken = start(g)->rank_later();
  all_asked(1);
  g[3]->fail();
  g->answer();
  thrown<broken_promise>("of one member", [&] { broken.get(); });
}

struct Cell {
  future<int> value() { return waiting_.emplace_back().get_future(); }
  future<void> done() {
    promise<void> p;
    auto f = p.get_future();
    p.set_value();
    return f;
  }
  void set(int x) {
    for (auto& p : std::exchange(waiting_, {})) p.set_value(x);
  }
  void forget() { waiting_.clear(); }
  std::size_t asked() const { return waiting_.size(); }
  std::vector<promise<int>> waiting_;
};
ORRERY_PROCESS(Cell, value, done, set, forget, asked);

int call_value(array<Cell, int> a, int i) { return a[i]->value(); }

void elements() {
  auto a = create_array<Cell, int>();
  for (int i = 0; i < 8; ++i) a.insert(i);
  for (int i = 0; i < 8; ++i) {
    auto v = start(a[i])->value();
    auto w = start(a[i])->value();
    auto c = start_call<&call_value>(pe(world_pes() - 1), a, i);
    while (a[i]->asked() != 3) yield();
    a[i]->done();
    start(a[i])->done().get();
    a[i]->set(i);
    check(v.get() == i && w.get() == i && c.get() == i, "of an element");
    auto lost = start(a[i])->value();
    while (a[i]->asked() != 1) yield();
    a[i]->forget();
    thrown<broken_promise>("of an element", [&] { lost.get(); });
  }
}

// --- what is wrong -----------------------------------------------------------------------------------------------------

void misuse() {
  promise<int> p;
  check(static_cast<bool>(p), "it is to be kept");
  auto f = p.get_future();
  check_contains(thrown<usage_error>("a second future", [&] { (void)p.get_future(); }), "there is only one");
  p.set_value(1);
  check(!p && f.get() == 1, "it is kept");
  check_contains(thrown<usage_error>("a second value", [&] { p.set_value(2); }), "it was kept before");
  promise<int> q = std::move(p);
  check_contains(thrown<usage_error>("moved from", [&] { p.set_value(2); }), "it was moved from");
  promise<void> never;  // nobody is told
  auto untaken = promise<int>().get_future();
  thrown<broken_promise>("of what has ended", [&] { untaken.get(); });
}

task<int> awaits(future<int>& f) { co_return co_await f; }

/// What somebody waits for is not taken from him.
void awaited() {
  std::vector<future<int>> one;
  future<int>& f = one.emplace_back();
  const auto refused = [&](std::string_view by, const auto& take) {
    check_contains(thrown<usage_error>(by, take), "waits for it already");
    check(f.valid() && one.size() == 1, fmt::format("{} leaves the future as it was", by));
  };
  const auto all_are_refused = [&] {
    refused("then", [&] { (void)f.then([](int) {}); });
    refused("when_all", [&] { (void)when_all(std::move(one)); });
    promise<int> p;
    auto g = p.get_future();
    refused("when_all of two", [&] { (void)when_all(std::move(g), std::move(f)); });
    check(g.valid(), "nor is what stands beside it");
    p.set_value(1);
    refused("when_any", [&] { (void)when_any(std::move(one)); });
    refused("shared_future", [&] { (void)shared_future<int>(std::move(f)); });
    refused("get", [&] { (void)f.get(); });
    refused("wait_for", [&] { (void)f.wait_for(std::chrono::milliseconds(1)); });
    refused("a coroutine", [&] { start(awaits(f)).get(); });
  };
  const auto me = this_process<function>();
  for (const bool has_limit : {false, true}) {
    promise<int> p;
    f = p.get_future();
    bool waits = false;
    spawn_here([&, me] {
      waits = true;
      if (has_limit) check(f.wait_for(std::chrono::hours(1)), "it comes in time");
      send(me, f.get());
    });
    while (!waits) yield();
    all_are_refused();
    p.set_value(5);
    check(f.ready(), "it is there, and who waits for it has not gone on yet");
    all_are_refused();
    check(receive<int>() == 5, "who waits has it");
  }
  promise<int> p;
  f = p.get_future();
  auto t = start(awaits(f));
  all_are_refused();
  p.set_value(6);
  all_are_refused();
  check(t.get() == 6, "a coroutine that waits has it");
  promise<int> q;
  f = q.get_future();
  check(!f.wait_for(std::chrono::milliseconds(1)), "nobody has kept it");
  auto next = f.then([](int n) { return n + 1; });
  q.set_value(7);
  check(next.get() == 8, "nobody waits any more");
}

void elsewhere() {  // threads only
  promise<int> p;
  auto f = p.get_future();
  const auto me = this_process<function>();
  spawn_here(pe(1), [&p, me] {
    try {
      p.set_value(1);
    } catch (const usage_error& e) {
      send(me, std::string(e.what()));
    }
    const promise<int> taken = std::move(p);  // ends there
  });
  check_contains(receive<std::string>(), "belongs to PE 0 and was used on PE 1");
  thrown<broken_promise>("ended elsewhere", [&] { f.get(); });
}

/// What happens to who waits when the program ends.
struct Listener {
  void wait_for(remote<Desk> d) {
    try {
      d->next();
      check(false, "an answer");
    } catch (const stopped&) {
    }
  }
};
ORRERY_PROCESS(Listener, wait_for);

/// What is assigned to ends as if it had been destroyed.
void assigned() {
  promise<int> a;
  promise<int> b;
  auto of_a = a.get_future();
  auto of_b = b.get_future();
  a = std::move(b);
  thrown<broken_promise>("the old one", [&] { (void)of_a.get(); });
  thrown<usage_error>("moved from", [&] { b.set_value(7); });  // NOLINT(bugprone-use-after-move): what is tested
  a.set_value(5);
  auto x = std::move(of_b);
  promise<int> c;
  auto y = c.get_future();
  c.set_value(6);
  x = std::move(y);
  check(!y.valid() && x.get() == 6, "a future");  // NOLINT(bugprone-use-after-move): what is tested
  promise<int> d;
  auto of_d = d.get_future();
  check_contains(thrown<usage_error>("no exception", [&] { d.set_exception(nullptr); }), "set_exception");
  d.set_value(1);
  check(of_d.get() == 1, "it was still to be kept");
}

void ends() {
  for (std::uint32_t p = 0; p < world_pes(); ++p) {
    const auto desk = spawn<Desk>(pe(p));
    const auto front = spawn<Front>(pe(0), desk);
    for (std::uint32_t q = 0; q < world_pes(); ++q) post(spawn<Listener>(pe(q)))->wait_for(desk);
    await_asked(desk, world_pes());
    auto forgotten = start(front)->next();
    await_asked(desk, world_pes() + 1);
    auto follows = std::make_unique<future<int>>(start(front)->next().then([](int n) { return n; }));
    await_asked(desk, world_pes() + 2);
  }
}

/// What happens to who waits for a shared result when the program ends.
void shared_ends() {
  const auto desk = spawn<Desk>(pe(world_pes() - 1));
  const shared_future<std::unique_ptr<std::string>> text(start(desk)->text());
  const shared_future<int> n(start(desk)->next());
  int begun = 0;
  const auto waits = [&begun](auto get) {
    spawn_here([&begun, get] {
      ++begun;
      thrown<stopped>("at the end", get);
    });
  };
  for (int i = 0; i < 3; ++i) {
    waits([text] { check(*text.get() == "text", "a result that is not there"); });
    waits([n] { check(n.get() == 1, "a result that is not there"); });
    waits([text] { (void)text.then([](const auto& t) { return t->size(); }).get(); });
    waits([text] {
      if (text.wait_for(std::chrono::hours(1))) (void)text.get();  // a node may have ended before
    });
  }
  while (begun != 12) yield();
}

void dead_shared() {
  const auto desk = spawn<Desk>(pe(world_pes() - 1));
  const shared_future<int> all(start(desk)->next());
  for (int i = 0; i < 3; ++i) check(!all.wait_for(std::chrono::milliseconds(1)), "nobody answers");
  (void)all.get();
}

void dead() {
  const auto desk = spawn<Desk>(pe(world_pes() - 1));
  const auto front = spawn<Front>(pe(0), desk);
  (void)front->next();
}

void lost() {
  const auto desk = spawn<Desk>(node(world_nodes() - 1));
  auto f = start(desk)->next();
  auto called = start_call<&call_next>(here(), desk);
  await_asked(desk, 2);
  post_call<&testing::kill_own_node>(node(world_nodes() - 1));
  thrown<node_lost>("a lost node", [&] { f.get(); });
  thrown<node_lost>("a lost node", [&] { called.get(); });
}

void lost_delegate() {
  const auto desk = spawn<Desk>(node(world_nodes() - 1));
  const auto front = spawn<Front>(pe(0), desk);
  auto f = start(front)->next();
  auto t = start(front)->text();
  await_asked(desk, 2);
  post_call<&testing::kill_own_node>(node(world_nodes() - 1));
  thrown<node_lost>("who answers for another one is lost", [&] { f.get(); });
  thrown<node_lost>("and with what follows", [&] { t.get(); });
}

void lost_element() {
  auto a = create_array<Cell, int>();
  for (int i = 0; i < 16; ++i) a.insert(i);
  std::vector<future<int>> all;
  for (int i = 0; i < 16; ++i) all.push_back(start(a[i])->value());
  for (int i = 0; i < 16; ++i)
    while (a[i]->asked() != 1) yield();
  post_call<&testing::kill_own_node>(node(world_nodes() - 1));
  testing::await_loss_of(world_nodes() - 1);
  int gone = 0;
  for (auto& f : all) {
    if (f.wait_for(std::chrono::milliseconds(200))) {
      thrown<node_lost>("an element that is lost", [&] { f.get(); });
      ++gone;
    }
  }
  check(gone > 0 && gone < 16, "some elements were there");
}

// --- the tests -----------------------------------------------------------------------------------------------------

using promises = testing::in_each_way;
INSTANTIATE_IN_FOUR_WAYS(promises);
TEST_P(promises, give_their_callers_the_value_when_it_is_there) { EXPECT_EQ(wrong_in("answered_later"), ""); }
TEST_P(promises, give_their_callers_exceptions_and_are_broken) { EXPECT_EQ(wrong_in("exceptions"), ""); }
TEST_P(promises, of_others_answer_for_a_process) { EXPECT_EQ(wrong_in("delegation"), ""); }
TEST_P(promises, in_what_follows_are_unwrapped) { EXPECT_EQ(wrong_in("unwrapping"), ""); }
TEST_P(promises, are_shared) { EXPECT_EQ(wrong_in("sharing_of_promises"), ""); }
TEST_P(promises, of_members_answer_a_broadcast) { EXPECT_EQ(wrong_in("groups_of_promises"), ""); }
TEST_P(promises, of_elements_answer_their_callers) { EXPECT_EQ(wrong_in("elements_of_promises"), ""); }
TEST_P(promises, that_are_used_wrongly_say_so) { EXPECT_EQ(wrong_in("misuse_of_promises"), ""); }
TEST_P(promises, whose_future_is_waited_for_cannot_be_followed) { EXPECT_EQ(wrong_in("awaited_of_promises"), ""); }
TEST_P(promises, end_where_others_are_assigned) { EXPECT_EQ(wrong_in("assigned"), ""); }
TEST_P(promises, end_with_the_program) { EXPECT_EQ(wrong_in("ends_of_promises"), ""); }
TEST_P(promises, that_nobody_keeps_are_in_the_report_of_a_dead_world) {
  if (GetParam() == &testing::serialized) return;
  const std::string said = wrong_in("dead_of_promises");
  EXPECT_NE(said.find("Desk::next made at "), std::string::npos) << said;
  EXPECT_NE(said.find("Desk::next at "), std::string::npos) << said;
}
TEST_P(promises, that_are_shared_end_with_the_program) { EXPECT_EQ(wrong_in("shared_ends"), ""); }
TEST_P(promises, that_are_shared_are_waited_for_once_in_the_report_of_a_dead_world) {
  if (GetParam() == &testing::serialized) return;
  const std::string said = wrong_in("dead_shared");
  EXPECT_NE(said.find("Desk::next at "), std::string::npos) << said;
  EXPECT_EQ(said.find("a promise that a process function made"), std::string::npos) << said;
}

TEST(promise, belongs_to_its_pe) {
  EXPECT_EQ(outcome_of({"--scenario=elsewhere_of_promises", "--orrery-pes=2"}), "good");
}

class promises_of_a_lost_node : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(of, promises_of_a_lost_node,
                         ::testing::Values("lost_of_promises", "lost_delegate", "lost_element"),
                         [](const auto& i) { return i.param; });
TEST_P(promises_of_a_lost_node, end_with_node_lost) { EXPECT_EQ(testing::wrong_where_a_node_is_lost(GetParam()), ""); }

const orrery::testing::scenarios_of_file of_this({{"answered_later", answered_later},
                                                  {"exceptions", exceptions},
                                                  {"delegation", delegation},
                                                  {"unwrapping", unwrapping},
                                                  {"sharing_of_promises", sharing},
                                                  {"groups_of_promises", groups},
                                                  {"elements_of_promises", elements},
                                                  {"misuse_of_promises", misuse},
                                                  {"awaited_of_promises", awaited},
                                                  {"elsewhere_of_promises", elsewhere},
                                                  {"assigned", assigned},
                                                  {"ends_of_promises", ends},
                                                  {"shared_ends", shared_ends},
                                                  {"dead_shared", dead_shared},
                                                  {"dead_of_promises", dead},
                                                  {"lost_of_promises", lost},
                                                  {"lost_delegate", lost_delegate},
                                                  {"lost_element", lost_element}});

}  // namespace promises_tests
}  // namespace orrery
