// SPDX-License-Identifier: Apache-2.0
// What was sent before main has returned, in each kind of world: it is executed, or it is said that
// it was not; failures are heard of in the same way everywhere. And processes that wait for
// themselves by when_all, then, co_await, or by a method that returns a future.
#include "../support/four_ways.hpp"

#include <orrery/process/task.hpp>

#include <cstdlib>
#include <stdexcept>

namespace orrery {
namespace end_of_main_tests {

using testing::check;
using testing::outcome_of;
using testing::thrown;
using namespace std::chrono_literals;

struct Last;
ORRERY_PROCESS(Last, boom, ping, count, pass_on, sleep, tell, play, alone, alone_in_a_tuple, among_others, call,
               by_then, by_shared, by_copies, by_what_follows, by_a_later_future, by_task, by_task_of_task, by_answer,
               later);
struct Last {
  void boom() { throw std::runtime_error("boom"); }
  int ping(int x) { return x; }
  void count() { ++n; }
  void pass_on(std::vector<remote<Last>> way) {
    if (way.empty()) throw std::runtime_error("at the end of the way");
    const auto next = way.back();
    way.pop_back();
    post(next)->pass_on(way);
  }
  void sleep(remote<function> main) {
    send(main, 1);
    sleep_for(1h);
  }
  // Fails if not all that was posted came.
  void tell(int expected) {
    if (n != expected) throw std::runtime_error("it has not come");
    throw std::runtime_error("all has come");
  }
  void play(remote<Last> other) { post(other)->play(this_process<Last>()); }
  int call(remote<Last> other) { return other->ping(1); }
  int alone() {
    std::vector<future<int>> f;
    f.push_back(start(this_process<Last>())->ping(1));
    return when_all(std::move(f)).get()[0];
  }
  int alone_in_a_tuple() { return std::get<0>(when_all(start(this_process<Last>())->ping(1)).get()); }
  int among_others(std::vector<remote<Last>> others) {
    std::vector<future<int>> f;
    for (const auto& o : others) f.push_back(start(o)->ping(1));
    for (const auto& o : others) f.push_back(start(o)->call(this_process<Last>()));
    int sum = 0;
    for (const int x : when_all(std::move(f)).get()) sum += x;
    return sum;
  }
  int by_then(remote<Last> other) {
    return start(other)->call(this_process<Last>()).then([](int x) { return x; }).then([](int x) { return x; }).get();
  }
  int by_shared(remote<Last> other) {
    return shared_future<int>(start(other)->call(this_process<Last>())).then([](int x) { return x; }).get();
  }
  int by_copies(remote<Last> other) {
    const shared_future<int> all(start(other)->call(this_process<Last>()));
    const shared_future<int> copy = all;
    return copy.get();
  }
  // Not yet when it begins to wait.
  int by_what_follows(remote<Last> other) {
    const auto self = this_process<Last>();
    return start(other)->ping(1).then([self, other](int) { return other->call(self); }).get();
  }
  int by_a_later_future(remote<Last> other) {
    const auto self = this_process<Last>();
    return start(other)->ping(1).then([self, other](int) { return start(other)->call(self); }).get();
  }
  static task<int> ask(remote<Last> whom, remote<Last> about) {
    co_await start(whom)->ping(1);
    co_return co_await start(whom)->call(about);
  }
  static task<int> ask_by_another(remote<Last> whom, remote<Last> about) { co_return co_await ask(whom, about); }
  int by_task(remote<Last> other) { return start(ask(other, this_process<Last>())).get(); }
  int by_task_of_task(remote<Last> other) { return start(ask_by_another(other, this_process<Last>())).get(); }
  // This process is free while the answer is still to come.
  future<int> later(remote<Last> whom) { return start(whom)->ping(1); }
  int by_answer(remote<Last> other) { return other->later(this_process<Last>()); }
  int n = 0;
};

remote<Last> last() { return spawn<Last>(pe(world_pes() - 1)); }

void dropped() { (void)start(last())->boom(); }
void posted() { post(last())->boom(); }
void followed() {
  (void)start(last())->ping(1).then([](int) { throw std::runtime_error("boom"); });
}
void many() {
  const auto p = last();
  for (int i = 0; i < 1000; ++i) post(p)->count();
  post(p)->tell(1000);
}
void passed_on() {
  std::vector<remote<Last>> all;
  for (std::uint32_t i = 0; i < 20; ++i) all.push_back(spawn<Last>(pe(i % world_pes())));
  post(last())->pass_on(all);
}
void too_late() {
  const auto p = last();
  post(p)->sleep(this_process<function>());
  (void)receive<int>();
  for (int i = 0; i < 3; ++i) post(p)->count();
}
void for_ever() { post(last())->play(spawn<Last>(here())); }
void dropped_too_late() {
  const auto p = last();
  post(p)->sleep(this_process<function>());
  (void)receive<int>();
  for (int i = 0; i < 3; ++i) (void)start(p)->ping(1);
}
void circles_through_futures() {
  const auto a = last();
  const auto b = spawn<Last>(here());
  const std::pair<const char*, int (*)(remote<Last>, remote<Last>)> all[] = {
      {"then", [](remote<Last> x, remote<Last> y) { return x->by_then(y); }},
      {"what follows a shared future", [](remote<Last> x, remote<Last> y) { return x->by_shared(y); }},
      {"a shared future", [](remote<Last> x, remote<Last> y) { return x->by_copies(y); }},
      {"what follows", [](remote<Last> x, remote<Last> y) { return x->by_what_follows(y); }},
      {"a later future", [](remote<Last> x, remote<Last> y) { return x->by_a_later_future(y); }},
      {"a task", [](remote<Last> x, remote<Last> y) { return x->by_task(y); }},
      {"a task of a task", [](remote<Last> x, remote<Last> y) { return x->by_task_of_task(y); }},
      {"an answer", [](remote<Last> x, remote<Last> y) { return x->by_answer(y); }},
  };
  for (const auto& [name, wait] : all) {
    thrown<deadlock_error>(name, [&] { (void)wait(a, b); });
    thrown<deadlock_error>(name, [&] { (void)wait(b, a); });
  }
  check(a->ping(7) == 7 && b->ping(7) == 7, "a call afterwards");
}
// Waits that look like circles and end.
void no_circles() {
  const auto a = last();
  const auto b = spawn<Last>(here());
  const auto c = last();
  for (int i = 0; i < 50; ++i) {
    auto first = start(a)->by_then(b);
    check(b->later(c) == 1, "an answer that comes later");
    thrown<deadlock_error>("then", [&] { (void)first.get(); });
    std::vector<future<int>> all;
    for (int k = 0; k < 4; ++k) {
      all.push_back(start(b)->later(c));
      all.push_back(start(Last::ask_by_another(a, c)));
      all.push_back(start(a)->later(b).then([c](int x) { return start(c)->ping(x); }));
    }
    int sum = 0;
    for (const int x : when_all(std::move(all)).get()) sum += x;
    check(sum == 12, "all answers");
  }
}
void circles() {
  thrown<deadlock_error>("alone", [] { (void)last()->alone(); });
  thrown<deadlock_error>("alone, in a tuple", [] { (void)last()->alone_in_a_tuple(); });
  std::vector<remote<Last>> all;
  for (std::uint32_t i = 0; i < 2 * world_pes(); ++i) all.push_back(spawn<Last>(pe(i % world_pes())));
  thrown<deadlock_error>("among others", [&] { (void)last()->among_others(all); });
}

/// Its node does not end as it should.
struct Bad {
  void fail_at_exit() const {
    std::atexit([] { std::_Exit(3); });
  }
  void spin() const {
    fmt::print(stderr, "it spins\n");
    for (const volatile int go_on = 1; go_on != 0;) {
    }
  }
};
ORRERY_PROCESS(Bad, fail_at_exit, spin);

void bad_exit() { spawn<Bad>(pe(1))->fail_at_exit(); }
void spins() {
  const auto bad = spawn<Bad>(pe(1));
  post(bad)->spin();
}

class end_of_main : public testing::in_each_way {
 protected:
  static void expect_said(std::string_view scenario, std::string_view text) {
    for (std::vector<std::string> options : GetParam()->worlds) {
      options.push_back(fmt::format("--scenario={}", scenario));
      options.emplace_back("--orrery-failed-exit=1");
      const std::string said = outcome_of(options);
      EXPECT_NE(said.find(text), std::string::npos) << options[0] << ": " << said;
    }
  }
};
INSTANTIATE_IN_FOUR_WAYS(end_of_main);

TEST_P(end_of_main, does_not_hide_failures_of_calls_whose_future_was_dropped) {
  expect_said("dropped", "::boom failed, and nobody waits for its result: ");
  expect_said("dropped", "1 one-way message failed, so the exit code is 1");
}
TEST_P(end_of_main, does_not_hide_failures_of_posts) {
  expect_said("posted", "::boom failed, and nobody waits for its result: ");
  expect_said("posted", "1 one-way message failed, so the exit code is 1");
}
TEST_P(end_of_main, does_not_hide_failures_of_what_follows_a_call) {
  expect_said("followed", "what follows a call (then, when_all, when_any) failed");
  expect_said("followed", "1 one-way message failed, so the exit code is 1");
}
TEST_P(end_of_main, lets_what_was_sent_be_executed) { expect_said("many_of_end_of_main", "all has come"); }
TEST_P(end_of_main, lets_what_that_sends_be_executed) { expect_said("passed_on", "at the end of the way"); }
TEST_P(end_of_main, says_what_was_not_executed) {
  expect_said("too_late", "3 one-way messages were not executed when the program ended: ");
}
TEST_P(end_of_main, says_which_calls_without_a_future_had_no_answer) {
  expect_said("dropped_too_late", "3 calls whose futures were dropped had no answer when the program ended: ");
}
TEST_P(end_of_main, ends_those_who_go_on_for_ever) { expect_said("for_ever", "good"); }
TEST_P(end_of_main, is_reached_by_an_error_of_who_waits_for_itself_by_when_all) {
  EXPECT_EQ(wrong_in("circles_of_end_of_main"), "");
}
TEST_P(end_of_main, is_reached_by_an_error_of_who_waits_for_itself_through_futures) {
  EXPECT_EQ(wrong_in("circles_through_futures"), "");
}
TEST_P(end_of_main, is_reached_without_an_error_where_waits_are_no_circle) { EXPECT_EQ(wrong_in("no_circles"), ""); }

TEST(end_of_nodes, makes_the_exit_code_1_where_one_fails) {
  EXPECT_EQ(outcome_of({"--scenario=bad_exit", "--orrery-nodes=2", "--orrery-pes=1"}),
            "orrery: node 1 exited with status 3\nexit status 1");
}
TEST(end_of_nodes, makes_the_exit_code_1_where_one_has_to_be_killed) {
  const std::string said = outcome_of({"--scenario=spins", "--orrery-nodes=2", "--orrery-pes=1"});
  EXPECT_NE(said.find("orrery: 1 node did not end within 10 s and was killed"), std::string::npos) << said;
  EXPECT_TRUE(said.ends_with("exit status 1")) << said;
}

const orrery::testing::scenarios_of_file of_this({{"bad_exit", bad_exit},
                                                  {"spins", spins},
                                                  {"dropped", dropped},
                                                  {"posted", posted},
                                                  {"followed", followed},
                                                  {"many_of_end_of_main", many},
                                                  {"passed_on", passed_on},
                                                  {"too_late", too_late},
                                                  {"for_ever", for_ever},
                                                  {"dropped_too_late", dropped_too_late},
                                                  {"circles_through_futures", circles_through_futures},
                                                  {"no_circles", no_circles},
                                                  {"circles_of_end_of_main", circles}});

}  // namespace end_of_main_tests
}  // namespace orrery
