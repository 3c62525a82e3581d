// SPDX-License-Identifier: Apache-2.0
// Posts that come later, and coroutines that wait for calls, in each kind of world.
#include "../support/four_ways.hpp"

#include <orrery/array/array.hpp>
#include <orrery/process/task.hpp>
#include <orrery/process/timed_post.hpp>
#include <orrery/process/when_all.hpp>

#include <stdexcept>

namespace orrery {
namespace timers_tests {

using namespace std::chrono_literals;
using testing::check;
using testing::thrown;

struct Bell {
  void ring(int n, std::string text) {
    rung += n;
    last = std::move(text);
  }
  void view(std::string_view text) { last = text; }
  int count() const { return rung; }
  std::string text() const { return last; }
  int rung = 0;
  std::string last;
};
ORRERY_PROCESS(Bell, ring, view, count, text);

struct Clock;
ORRERY_PROCESS(Clock, tick, ticks);
struct Clock : element<Clock, int> {
  void tick(int n) { seen += n; }
  int ticks() const { return seen; }
  int seen = 0;
};

void later() {
  for (std::uint32_t p = 0; p < world_pes(); ++p) {
    const auto b = spawn<Bell>(pe(p));
    const auto begin = now();
    post_after(2ms, b)->ring(1, "late");
    while (b->count() == 0) sleep_for(100us);
    check(now() - begin >= 2ms && b->text() == "late", "not before its time");
    {
      std::string ends_soon = "a view";
      post_after(1ms, b)->view(ends_soon);
      ends_soon = "changed";
    }
    quiescence();
    check(b->text() == "a view", "the arguments are kept; the world waits for it");
    const auto never = post_after(1h, b)->ring(1000, "");
    check(never.cancel() && !never.cancel(), "it is cancelled once");
    quiescence();
    check(b->count() == 1, "it was cancelled");
  }
}

void again() {
  for (std::uint32_t p = 0; p < world_pes(); ++p) {
    const auto b = spawn<Bell>(pe(p));
    const auto beat = post_every(200us, b)->ring(1, "beat");
    while (b->count() < 3) sleep_for(100us);
    check(beat.cancel(), "there would be more");
    const int seen = b->count();
    quiescence();
    check(seen >= 3 && b->count() - seen <= 1, "at most one was on its way");
    const auto sent = post_after(1us, b)->ring(1, "sent");
    while (b->text() != "sent") sleep_for(100us);
    quiescence();
    check(!sent.cancel() && !beat.cancel(), "they are over");
  }
  thrown<usage_error>("no time between", [] { (void)post_every(0ms, spawn<Bell>(here())); });
  thrown<usage_error>("no post", [] { timed_post().cancel(); });
}

bool of_others(timed_post t) { return t.cancel(); }

void elsewhere() {
  for (std::uint32_t p = 0; p < world_pes(); ++p) {
    const auto b = spawn<Bell>(here());
    const auto t = post_after(1h, b)->ring(1, "");
    check(call<&of_others>(pe(p), t) && !t.cancel(), "another PE has cancelled it");
    const auto beat = post_every(50us, b)->ring(1, "");
    while (b->count() == 0) sleep_for(50us);
    check(call<&of_others>(pe(p), beat), "another PE has cancelled it");
    const int seen = b->count();
    sleep_for(1ms);
    check(b->count() == seen, "nothing is sent any more");
  }
}

void busy() {
  const auto b = spawn<Bell>(here());
  const auto start = now();
  const auto beat = post_every(1ms, b)->ring(1, "");
  yield();
  const auto begin = now();
  compute(30ms);
  while (now() - begin < 30ms) continue;
  const auto rest = now();
  while (b->count() < 3) sleep_for(100us);
  const auto seen = b->count();
  check(seen <= (begin - start + now() - rest) / 1ms + 3, "those that passed while the PE was busy are left out");
  beat.cancel();
}

void elements() {
  const auto a = create_array<Clock>(range<int>{6});
  const auto one = post_every(200us, a[3])->tick(1);
  while (a[3]->ticks() < 2) sleep_for(100us);
  one.cancel();
  post_after(1ms, a)->tick(100);
  quiescence();
  check(a[3]->ticks() >= 102 && a[5]->ticks() == 100, "elements and arrays, too");
  const auto bells = spawn_group<Bell>(everywhere(), world_pes());
  post_after(1ms, bells)->ring(5, "all");
  quiescence();
  check(bells->count() == std::vector<int>(world_pes(), 5), "and groups");
}

/// Takes its timed posts back when it ends.
struct Rings {
  explicit Rings(remote<Bell> b) : own(post_every(5ms, b)->ring(1, "")) {}
  Rings(remote<Bell>, timed_post of_another) : own(of_another) {}
  ~Rings() { own.cancel(); }
  timed_post own;
};
ORRERY_PROCESS(Rings);

void ends() {  // with the program
  const auto b = spawn<Bell>(pe(world_pes() - 1));
  for (std::uint32_t p = 0; p < world_pes(); ++p) {
    (void)spawn<Rings>(pe(p), b);
    (void)spawn<Rings>(pe(p), b, post_every(5ms, b)->ring(1, ""));
    destroy(spawn<Rings>(pe(p), b));
  }
  post_after(1h, b)->ring(1, "");
  post_every(100us, b)->ring(1, "");
}

// Something is always due on each PE.
void never_rest() {
  const auto b = spawn<Bell>(pe(world_pes() - 1));
  for (std::uint32_t p = 0; p < world_pes(); ++p) {
    for (int i = 0; i < 3; ++i) post_every(100us, b)->ring(1, "");
    spawn(pe(p), [] {
      for (;;) {
        compute(50us);  // in a simulation, where time stands still otherwise
        sleep_for(0ns);
      }
    });
  }
}

// --- coroutines ------------------------------------------------------------------------------------------------------------

struct Source {
  explicit Source(int n) : left(n) {}
  int next() {
    yield();
    if (left == 0) throw std::out_of_range("empty");
    return left--;
  }
  int left;
};
ORRERY_PROCESS(Source, next);

task<int> next_of(remote<Source> s) { co_return co_await start(s)->next(); }
task<long> add_up(remote<Source> a, remote<Source> b, int times) {
  long sum = 0;
  for (int i = 0; i < times; ++i) sum += co_await start(a)->next() + co_await next_of(b);
  co_return sum;
}
task<> drain(remote<Source> s, int* seen) {
  for (;;) {
    co_await start(s)->next();
    ++*seen;
  }
}

task<long> one() { co_return 1; }
task<long> count_to(int n) {
  long sum = 0;
  for (int i = 0; i < n; ++i) sum += co_await one();
  co_return sum;
}
task<long> count_down(int n) { co_return n == 0 ? 0 : 1 + co_await count_down(n - 1); }
// As count_to, after it was resumed by a call.
task<long> count_after(remote<Source> s, int n) {
  co_await start(s)->next();
  const long sum = co_await count_to(n) + co_await count_down(n);
  co_await start(s)->next();
  co_return sum + co_await count_to(n);
}
task<long> count_in_turns(remote<Source> s, int n) {
  long sum = 0;
  for (int i = 0; i < n; ++i) sum += co_await one() + (i % 100 == 0 ? co_await next_of(s) : 0);
  co_return sum;
}

struct Sums;
ORRERY_PROCESS(Sums, sum);
struct Sums {
  future<long> sum(remote<Source> a, remote<Source> b, int times) { return start(add_up(a, b, times)); }
};

void tasks() {
  for (std::uint32_t p = 0; p < world_pes(); ++p) {
    const auto a = spawn<Source>(pe(p), 10);
    const auto b = spawn<Source>(pe(world_pes() - 1 - p), 10);
    check(start(add_up(a, b, 3)).get() == 2 * (10 + 9 + 8), "a task that awaits futures and tasks");
    check(spawn<Sums>(pe(p))->sum(a, b, 4) == 2 * (7 + 6 + 5 + 4), "a method that answers when its task ends");
    check(thrown<std::out_of_range>("a task", [&] { start(add_up(a, b, 100)).get(); }) == "empty", "what it throws");
    int seen = 0;
    const auto c = spawn<Source>(pe(p), 5);
    auto d = start(drain(c, &seen));
    thrown<std::out_of_range>("a task without a result", [&] { d.get(); });
    check(seen == 5, "it has come to the end");
    {
      auto never = add_up(a, b, 1);
    }
    auto once = add_up(a, b, 0);
    check(start(std::move(once)).get() == 0, "no steps");
    thrown<usage_error>("twice", [&] { start(std::move(once)).get(); });
    std::vector<future<long>> many;
    const auto many_a = spawn<Source>(pe(p), 1000);
    const auto many_b = spawn<Source>(here(), 1000);
    for (int i = 0; i < 100; ++i) many.push_back(start(add_up(many_a, many_b, 10)));
    long sum = 0;
    for (const long s : when_all(std::move(many)).get()) sum += s;
    check(sum == 1000L * 1001, "many at a time");
  }
}

// Each of these would need more stack than there is if a task resumed the one that awaits it.
void long_tasks() {
  constexpr int n = testing::slowed_down ? 20'000 : 100'000;
  for (std::uint32_t p = 0; p < world_pes(); p += world_pes() - 1) {
    check(start(count_to(n)).get() == n, "tasks that end at once, one after the other");
    check(start(count_down(n)).get() == n, "tasks in tasks");
    const auto s = spawn<Source>(pe(p), 1'000'000);
    check(start(count_after(s, n)).get() == 3L * n, "the same after a call");
    constexpr int waits = n / 100;
    const auto t = spawn<Source>(pe(p), waits);
    check(start(count_in_turns(t, n)).get() == n + waits * (waits + 1L) / 2, "tasks that wait now and then");
    if (world_pes() == 1) break;
  }
}

using timers = testing::in_each_way;
INSTANTIATE_IN_FOUR_WAYS(timers);
TEST_P(timers, post_later_unless_they_are_cancelled) { EXPECT_EQ(wrong_in("later"), ""); }
TEST_P(timers, post_again_and_again_until_they_are_cancelled) { EXPECT_EQ(wrong_in("again"), ""); }
TEST_P(timers, are_cancelled_from_other_pes) { EXPECT_EQ(wrong_in("elsewhere_of_timers"), ""); }
TEST_P(timers, leave_out_what_passes_while_the_pe_is_busy) { EXPECT_EQ(wrong_in("busy_of_timers"), ""); }
TEST_P(timers, post_to_elements_arrays_and_groups) { EXPECT_EQ(wrong_in("elements_of_timers"), ""); }
TEST(timers_that_are_always_late, let_the_program_end) {
  for (const auto* way : {&testing::threads, &testing::nodes_of_one, &testing::nodes_of_two, &testing::simulated})
    for (std::vector<std::string> options : way->worlds) {
      options.insert(options.end(), {"--scenario=timers_never_rest", "--orrery-quiet"});
      const std::string said = testing::outcome_of(options);
      EXPECT_TRUE(said.ends_with("good")) << said;  // after a line on what was sent and not executed
    }
}
TEST_P(timers, end_with_the_program) { EXPECT_EQ(wrong_in("ends_of_timers"), ""); }
TEST_P(timers, are_not_needed_by_coroutines_that_wait_for_calls) { EXPECT_EQ(wrong_in("tasks"), ""); }
TEST_P(timers, and_coroutines_that_await_many_others_need_no_more_stack) { EXPECT_EQ(wrong_in("long_tasks"), ""); }

const orrery::testing::scenarios_of_file of_this({{"later", later},
                                                  {"again", again},
                                                  {"elsewhere_of_timers", elsewhere},
                                                  {"busy_of_timers", busy},
                                                  {"elements_of_timers", elements},
                                                  {"ends_of_timers", ends},
                                                  {"timers_never_rest", never_rest},
                                                  {"tasks", tasks},
                                                  {"long_tasks", long_tasks}});

}  // namespace timers_tests
}  // namespace orrery
