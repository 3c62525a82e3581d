// SPDX-License-Identifier: Apache-2.0
// Methods that wait until something holds of their objects, and what is made of that, in each kind of world.
#include "../support/four_ways.hpp"

#include <orrery/transport/internal/test_seed.hpp>

#include <orrery/array/array.hpp>
#include <orrery/process/channel.hpp>
#include <orrery/process/inbox.hpp>
#include <orrery/process/latch.hpp>
#include <orrery/process/semaphore.hpp>
#include <orrery/process/when_all.hpp>

#include <algorithm>
#include <deque>
#include <numeric>
#include <random>
#include <stdexcept>

namespace orrery {
namespace conditions_tests {

using namespace std::chrono_literals;
using testing::check;
using testing::check_contains;
using testing::thrown;

/// Its methods look whether they are alone in it wherever they are not parked.
struct Gate {
  void open(int n) {
    const alone a(*this);
    open_ = n;
  }
  int wait(int n) {
    int left = 0;
    {
      const alone a(*this);
      left = ++waiting_;
    }
    wait_until([this, n] { return open_ >= n; });
    const alone a(*this);
    yield();  // others of the PE run, none of this process
    --waiting_;
    passed_.push_back(n);
    return left;
  }
  bool wait_briefly(int n) {
    return wait_until(1ms, [this, n] { return open_ >= n; });
  }
  bool wait_at_most(int ms) {
    return wait_until(std::chrono::milliseconds(ms), [this] { return open_ >= 10; });
  }
  bool wait_for_ever() {
    wait_until([this] { return open_ >= 10; });
    return true;
  }
  void fail() {
    wait_until([this] { return open_ > 5 ? throw std::out_of_range("in the condition") : false; });
  }
  int waiting() const { return waiting_; }
  std::vector<int> passed() const { return passed_; }
  bool disturbed() const { return disturbed_; }

 private:
  struct alone {
    Gate& in;
    explicit alone(Gate& g) : in(g) {
      if (in.busy_) in.disturbed_ = true;
      in.busy_ = true;
    }
    alone(const alone&) = delete;
    ~alone() { in.busy_ = false; }
  };
  int open_ = 0;
  int waiting_ = 0;
  bool busy_ = false;
  bool disturbed_ = false;
  std::vector<int> passed_;
};
ORRERY_PROCESS(Gate, open, wait, wait_briefly, wait_at_most, wait_for_ever, fail, waiting, passed, disturbed);

int go_through(remote<Gate> g, int n) { return g->wait(n); }

template <class T, class F>
void until(const remote<T>& p, F holds) {
  while (!holds(p)) yield();
}

void methods() {
  for (std::uint32_t p = 0; p < world_pes(); ++p) {
    const auto g = spawn<Gate>(pe(p));
    std::vector<future<int>> all;
    for (std::uint32_t q = 0; q < world_pes(); ++q)
      for (int n = 1; n <= 3; ++n) all.push_back(start_call<&go_through>(pe(q), g, n));
    const int each = static_cast<int>(world_pes());
    until(g, [&](const auto& x) { return x->waiting() == 3 * each; });
    g->open(1);
    until(g, [&](const auto& x) { return x->waiting() == 2 * each; });
    check(g->passed() == std::vector<int>(each, 1), "others went through");
    g->open(3);
    int sum = 0;
    for (int left : when_all(std::move(all)).get()) sum += left;
    check(sum == 3 * each * (3 * each + 1) / 2, "each has waited once");
    check(g->wait(2) == 1, "what holds is not waited for");
    check(!g->disturbed(), "two methods ran at a time");
    check(!g->wait_briefly(4) && g->wait_briefly(3), "a time limit");
    auto late = start(g)->wait(5);
    check(!g->wait_briefly(5), "a time limit beside one that waits");
    auto fails = start(g)->fail();
    auto gone = start(g)->wait(100);
    until(g, [](const auto& x) { return x->waiting() == 2; });
    g->open(6);
    late.get();
    check(thrown<std::out_of_range>("fail", [&] { fails.get(); }) == "in the condition", "what a condition throws");
    destroy(g);
    thrown<process_gone>("destroyed while it waits", [&] { gone.get(); });
    thrown<process_gone>("destroyed", [&] { g->open(1); });
  }
}

// Many wait for the same, and their limits end in any order; each ends, and by its own.
void limits() {
  std::mt19937 random(static_cast<std::uint32_t>(testing::test_seed()));
  for (std::uint32_t p = 0; p < world_pes(); ++p) {
    const auto g = spawn<Gate>(pe(p));
    std::vector<future<bool>> in_time;
    std::vector<future<bool>> late;
    for (int i = 0; i < 60; ++i)
      if (random() % 4 == 0) {
        late.push_back(start(g)->wait_for_ever());
      } else {
        in_time.push_back(start(g)->wait_at_most(1 + static_cast<int>(random() % 8)));
      }
    for (auto& f : in_time) check(!f.get(), "the condition does not hold");
    for (auto& f : late) check(!f.ready(), "it has no limit");
    in_time.clear();
    for (int i = 0; i < 20; ++i) in_time.push_back(start(g)->wait_at_most(3'600'000));
    g->open(10);
    for (auto& f : in_time) check(f.get(), "it holds in time");
    for (auto& f : late) check(f.get(), "it holds");
  }
}

void misuse() {
  check_contains(thrown<usage_error>("in a function", [] { wait_until([] { return false; }); }),
                 "only a method of a process can");
}

// --- processes that are made of it -----------------------------------------------------------------------------------------

void arrive(remote<latch> l, remote<function> tell) {
  l->arrive_and_wait();
  send(tell, 1);
}

void latches() {
  const auto me = this_process<function>();
  for (std::uint32_t p = 0; p < world_pes(); ++p) {
    const auto l = spawn<latch>(pe(p), 7);
    for (int i = 0; i < 6; ++i) post_call<&arrive>(pe(static_cast<std::uint32_t>(i) % world_pes()), l, me);
    check(!receive_for<int>(1ms) && !l->is_open(), "one is missing");
    check(!receive_for<int>(std::chrono::hours::min()), "a time long past is no time");
    l->count_down();
    for (int i = 0; i < 6; ++i) (void)receive<int>();
    l->wait();
    l->count_down(3);
    check(l->is_open(), "it stays open");
    const auto never = spawn<latch>(pe(p), 1);
    auto w = start(never)->wait();
    check(!w.wait_for(1ms), "it opens by itself");
    destroy(never);
    thrown<process_gone>("a latch that is destroyed", [&] { w.get(); });
  }
}

struct Guarded {
  void enter() { most_ = std::max(most_, ++inside_); }
  void leave() { --inside_; }
  int most() const { return most_; }
  int inside_ = 0;
  int most_ = 0;
};
ORRERY_PROCESS(Guarded, enter, leave, most);

void use(remote<semaphore> s, remote<Guarded> g, int times) {
  for (int i = 0; i < times; ++i) {
    s->acquire();
    g->enter();
    yield();
    g->leave();
    s->release();
  }
}

void semaphores() {
  for (std::uint32_t p = 0; p < world_pes(); ++p) {
    const auto s = spawn<semaphore>(pe(p), 2);
    const auto g = spawn<Guarded>(pe(world_pes() - 1));
    std::vector<future<void>> all;
    for (std::uint32_t i = 0; i < 6; ++i) all.push_back(start_call<&use>(pe(i % world_pes()), s, g, 5));
    when_all(std::move(all)).get();
    check(g->most() == 2, fmt::format("{} at a time", g->most()));
    check(s->try_acquire() && s->try_acquire() && !s->try_acquire(), "two to have");
    s->release(2);
    check(s->available() == 2, "and two to give back");
  }
}

long sum_of(remote<channel<int>> c) {
  long sum = 0;
  try {
    for (;;) sum += c->receive();
  } catch (const channel_closed&) {
  }
  return sum;
}
void send_some(remote<channel<int>> c, int first, int n) {
  for (int i = 0; i < n; ++i) c->send(first + i);
}

void channels() {
  for (std::uint32_t p = 0; p < world_pes(); ++p) {
    for (const std::size_t capacity : {0, 1, 5}) {
      const auto c = spawn<channel<int>>(pe(p), capacity);
      std::vector<future<long>> sums;
      std::vector<future<void>> senders;
      for (std::uint32_t i = 0; i < 3; ++i) sums.push_back(start_call<&sum_of>(pe(i % world_pes()), c));
      for (std::uint32_t i = 0; i < 3; ++i)
        senders.push_back(start_call<&send_some>(pe(i % world_pes()), c, static_cast<int>(100 * i), 20));
      when_all(std::move(senders)).get();
      c->close();
      long sum = 0;
      for (long x : when_all(std::move(sums)).get()) sum += x;
      check(sum == 60 * 100 + 3 * 190, fmt::format("values that sum up to {}", sum));
      thrown<channel_closed>("sent when it was closed", [&] { c->send(1); });
      thrown<channel_closed>("sent when it was closed, without a wait", [&] { (void)c->try_send(1); });
      thrown<channel_closed>("nothing is left", [&] { (void)c->try_receive(); });
    }
    const auto c = spawn<channel<std::string>>(pe(p), 2);
    check(c->try_send("one") && c->try_send("two") && !c->try_send("three"), "two find room");
    auto third = start(c)->send("three");
    check(c->receive() == "one" && c->receive() == "two" && c->receive() == "three" && c->size() == 0, "their order");
    third.get();
    check(!c->try_receive().has_value(), "it is empty");
    c->send("last but one");
    c->send("last");
    c->close();
    thrown<channel_closed>("closed and full", [&] { (void)c->try_send("late"); });
    check(c->try_receive() == "last but one" && c->try_receive() == "last", "what was sent before is received");
    thrown<channel_closed>("closed and empty", [&] { (void)c->try_receive(); });
    const auto gone = spawn<channel<int>>(pe(p));
    auto waits = start(gone)->receive();
    destroy(gone);
    thrown<process_gone>("a channel that is destroyed", [&] { waits.get(); });
  }
}

// --- elements ----------------------------------------------------------------------------------------------------------------

struct Block;
ORRERY_PROCESS(Block, border, iterate, sum);
struct Block : element<Block, int> {
  void border(int step, long v) { borders.put(step, v); }
  void iterate(int steps) {
    const int n = 8;
    for (int step = 0; step < steps; ++step) {
      for (const int to : {(this_index() + 1) % n, (this_index() + n - 1) % n, (this_index() + 2) % n})
        post(this_array()[to])->border(step, value);
      for (long b : borders.take(step, 2)) value += b;
      value += borders.take(step);
    }
  }
  long sum() const { return value + 1000 * static_cast<long>(borders.size()); }
  template <class A>
  void serialize(A& a) {
    a & value & borders;
  }
  long value = 1;
  inbox<int, long> borders;
};

void elements() {
  const auto a = create_array<Block>(range<int>{8});
  for (int i = 0; i < 8; ++i) post(a[i])->iterate(6);
  for (int i = 0; i < 8; ++i)
    while (a[i]->sum() != 4096) yield();  // each step makes it four times as large
}

// --- an inbox ----------------------------------------------------------------------------------------------------------------

/// Several methods wait for values of one inbox.
struct Basket {
  void put(int n, int v) { all.put(n, v); }
  void put_many(int n, std::vector<int> values) {
    for (const int v : values) all.put(n, v);
  }
  std::vector<int> take(int n, std::size_t count) {
    const alone a(*this);
    return all.take(n, count);
  }
  int take_one(int n) {
    const alone a(*this);
    return all.take(n);
  }
  /// The number is a member, which other methods change.
  std::vector<int> take_current(std::size_t count) {
    const alone a(*this);
    if (count == 1) return {named.take(current)};
    return named.take(current, count);
  }
  void change(std::string to) {
    current = std::move(to);
    current.shrink_to_fit();
  }
  void put_named(std::string n, int v) { named.put(std::move(n), v); }
  void replace(int n, int v) {
    inbox<int, int> other;
    other.put(n, v);
    all = other;
  }
  int waiting() const { return inside; }
  int left() const { return static_cast<int>(all.size()); }

 private:
  struct alone {
    explicit alone(Basket& b) : in(b) { ++in.inside; }
    ~alone() { --in.inside; }
    Basket& in;
  };
  int inside = 0;
  inbox<int, int> all;
  inbox<std::string, int> named;
  std::string current;
};
ORRERY_PROCESS(Basket, put, put_many, take, take_one, take_current, change, put_named, replace, waiting, left);

using some = std::vector<int>;

void inboxes() {
  for (std::uint32_t p = 0; p < world_pes(); ++p) {
    const auto b = spawn<Basket>(pe(p));
    const auto wait_for = [&](int n) { until(b, [n](const auto& x) { return x->waiting() == n; }); };
    // the younger one wants fewer
    auto four = start(b)->take(1, 4);
    wait_for(1);
    auto two = start(b)->take(1, 2);
    wait_for(2);
    b->put(2, 20);
    b->put(1, 10);
    check(b->waiting() == 2, "one of two");
    b->put(1, 11);
    check(two.get() == some{10, 11}, "the first two");
    b->put_many(1, {12, 13, 14});
    check(b->waiting() == 1, "it counts anew when others have taken");
    check(b->take_one(1) == 12, "the oldest");
    b->put(1, 15);
    check(b->waiting() == 1, "it counts anew when some were taken without a wait");
    b->put(1, 16);
    check(four.get() == some{13, 14, 15, 16}, "the next four");
    // of two that could go on the older one does
    auto first = start(b)->take(3, 2);
    wait_for(1);
    auto second = start(b)->take(3, 2);
    wait_for(2);
    b->put_many(3, {30, 31, 32});
    check(first.get() == some{30, 31} && b->waiting() == 1, "the older one");
    b->put(3, 33);
    check(second.get() == some{32, 33}, "then the other");
    // two numbers at once
    auto five = start(b)->take_one(5);
    auto six = start(b)->take_one(6);
    wait_for(2);
    b->put_many(6, {60});
    check(six.get() == 60 && b->waiting() == 1, "another number");
    b->replace(5, 50);
    check(five.get() == 50 && b->left() == 0, "another inbox in its place");
    // a number that others change meanwhile
    const std::string long_one(100, 'a');
    for (const std::size_t count : {1, 2}) {
      b->change(long_one);
      auto current = start(b)->take_current(count);
      wait_for(1);
      b->change("b");
      b->put_named("b", 1);
      b->put_named("b", 2);
      check(b->waiting() == 1, "it waits for the number that it was given");
      some expected;
      for (std::size_t i = 0; i < count; ++i) {
        b->put_named(long_one, static_cast<int>(i));
        expected.push_back(static_cast<int>(i));
      }
      check(current.get() == expected, "the number that it was at the call");
    }
    auto never = start(b)->take(7, 2);
    wait_for(1);
    b->put(7, 1);
    destroy(b);
    thrown<process_gone>("an inbox that is destroyed", [&] { never.get(); });
  }
}

// --- its end -----------------------------------------------------------------------------------------------------------------

void dead() { spawn<latch>(pe(world_pes() - 1), 1)->wait(); }

void wait_in_vain(remote<Gate> g) {
  try {
    g->wait(1000);
    check(false, "it goes on");
  } catch (const stopped&) {
  }
}

void ends() {
  for (std::uint32_t p = 0; p < world_pes(); ++p) {
    const auto g = spawn<Gate>(pe(p));
    for (std::uint32_t q = 0; q < world_pes(); ++q) post_call<&wait_in_vain>(pe(q), g);
    post(g)->wait_briefly(5);
    until(g, [](const auto& x) { return x->waiting() == static_cast<int>(world_pes()); });
  }
}

void acquire_of(remote<semaphore> s) { s->acquire(); }
void receive_of(remote<channel<int>> c) { (void)c->receive(); }
void nothing() {}

void lost() {
  const auto s = spawn<semaphore>(here(), 0);
  const auto c = spawn<channel<int>>(here());
  const placement last = node(world_nodes() - 1);
  post_call<&acquire_of>(last, s);
  post_call<&receive_of>(last, c);
  call<&nothing>(last);  // both wait
  auto acquired = start(s)->acquire();
  const auto l = spawn<latch>(node(world_nodes() - 1), 1);
  auto w = start(l)->wait();
  check(!l->is_open(), "it is there");
  post_call<&testing::kill_own_node>(node(world_nodes() - 1));
  thrown<node_lost>("a lost latch", [&] { w.get(); });
  s->release(2);
  c->send(1);
  acquired.get();
  check(s->available() == 1 && c->receive() == 1, "who is lost while it waits gets nothing");
}

// --- the tests ---------------------------------------------------------------------------------------------------------------

using conditions = testing::in_each_way;
INSTANTIATE_IN_FOUR_WAYS(conditions);
TEST_P(conditions, let_methods_wait_for_others_of_their_object) { EXPECT_EQ(wrong_in("methods"), ""); }
TEST_P(conditions, have_limits_that_end_in_any_order) { EXPECT_EQ(wrong_in("limits_of_conditions"), ""); }
TEST_P(conditions, of_functions_are_refused) { EXPECT_EQ(wrong_in("misuse_of_conditions"), ""); }
TEST_P(conditions, make_latches) { EXPECT_EQ(wrong_in("latches"), ""); }
TEST_P(conditions, make_semaphores) { EXPECT_EQ(wrong_in("semaphores"), ""); }
TEST_P(conditions, make_channels) { EXPECT_EQ(wrong_in("channels"), ""); }
TEST_P(conditions, let_elements_wait_for_the_borders_of_a_step) { EXPECT_EQ(wrong_in("elements_of_conditions"), ""); }
TEST_P(conditions, give_each_method_its_values_of_an_inbox) { EXPECT_EQ(wrong_in("inboxes"), ""); }
TEST_P(conditions, end_with_the_program) { EXPECT_EQ(wrong_in("ends_of_conditions"), ""); }
TEST_P(conditions, that_nobody_makes_true_are_in_the_report_of_a_dead_world) {
  const std::string said = wrong_in("dead_of_conditions");
  EXPECT_NE(said.find("in orrery::latch::wait waits in wait_until"), std::string::npos) << said;
}
TEST(conditions_of_a_lost_node, end_with_node_lost) {
  EXPECT_EQ(testing::wrong_where_a_node_is_lost("lost_of_conditions"), "");
}

const orrery::testing::scenarios_of_file of_this({{"methods", methods},
                                                  {"limits_of_conditions", limits},
                                                  {"misuse_of_conditions", misuse},
                                                  {"latches", latches},
                                                  {"semaphores", semaphores},
                                                  {"channels", channels},
                                                  {"elements_of_conditions", elements},
                                                  {"inboxes", inboxes},
                                                  {"dead_of_conditions", dead},
                                                  {"ends_of_conditions", ends},
                                                  {"lost_of_conditions", lost}});

}  // namespace conditions_tests
}  // namespace orrery
