// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/future.hpp>

#include <chrono>
#include <coroutine>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <orrery/orrery.hpp>
#include <orrery/process/internal/test_world.hpp>
#include <orrery/process/spawn_here.hpp>

namespace orrery {
namespace future_tests {

using testing::in_world;
using testing::what_is_thrown;
using namespace std::chrono_literals;

/// Answers when it is told to.
class Oracle {
 public:
  static constexpr bool orrery_reentrant = true;
  int answer(int n) {
    while (!open_) yield();
    return n;
  }
  int now(int n) { return n; }
  std::string text() { return "text"; }
  std::unique_ptr<int> owned(int n) { return std::make_unique<int>(n); }
  void nothing() {}
  void fail() { throw std::out_of_range("failed"); }
  int fail_late() {
    while (!open_) yield();
    throw std::range_error("late");
  }
  void open() { open_ = true; }
  void touch() { ++touched_; }
  int touched() { return touched_; }
  ORRERY_PROCESS_MEMBERS(Oracle, answer, now, text, owned, nothing, fail, fail_late, open, touch, touched)

 private:
  bool open_ = false;
  int touched_ = 0;
};

ORRERY_AT_EACH_PLACE(future_of);

TEST_P(future_of, a_call_is_ready_once_the_method_has_ended) {
  in_world([] {
    const auto o = spawn<Oracle>(where());
    auto f = start(o)->answer(5);
    EXPECT_TRUE(f.valid());
    EXPECT_FALSE(f.ready());
    o->open();
    f.wait();
    EXPECT_TRUE(f.ready());
    EXPECT_EQ(f.get(), 5);
    EXPECT_FALSE(f.valid());
  });
}

TEST_P(future_of, a_call_has_its_exception) {
  in_world([] {
    const auto o = spawn<Oracle>(where());
    auto f = start(o)->fail();
    f.wait();
    EXPECT_TRUE(f.ready());
    EXPECT_EQ(what_is_thrown<std::out_of_range>([&] { f.get(); }), "failed");
  });
}

TEST_P(future_of, a_result_that_can_only_be_moved) {
  in_world([] { EXPECT_EQ(*start(spawn<Oracle>(where()))->owned(3).get(), 3); });
}

TEST_P(future_of, a_call_can_be_waited_for_with_a_time_limit_and_then_again) {
  in_world([] {
    const auto o = spawn<Oracle>(where());
    auto f = start(o)->answer(6);
    EXPECT_FALSE(f.wait_for(0ns));
    EXPECT_FALSE(f.wait_for(1ms));
    o->open();
    EXPECT_TRUE(f.wait_for(std::chrono::hours::max()));
    EXPECT_TRUE(f.wait_for(0ns));
    EXPECT_EQ(f.get(), 6);
  });
}

TEST_P(future_of, a_call_that_is_dropped_leaves_the_call_alone) {
  in_world([] {
    const auto o = spawn<Oracle>(where());
    {
      auto f = start(o)->touch();
    }
    (void)start(o)->owned(1).valid();
    (void)start(o)->fail().valid();
    EXPECT_EQ(o->touched(), 1);
  });
}

TEST_P(future_of, a_call_that_is_dropped_with_its_exception_is_a_failed_post) {
  ::testing::internal::CaptureStderr();
  const auto counts = in_world([] {
    const auto o = spawn<Oracle>(where());
    (void)start(o)->fail();  // before it has ended
    auto ready = start(o)->fail();
    ready.wait();
    ready = {};
    {
      auto next = start(o)->fail().then([] {});
    }
    (void)start(o)->nothing();
    o->nothing();
    quiescence();
  });
  const std::string report = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(counts[0].failed_posts, 3U) << report;
  EXPECT_NE(report.find("Oracle::fail failed, and nobody waits for its result: failed"), std::string::npos) << report;
  EXPECT_NE(report.find("what follows a call"), std::string::npos) << report;
}

TEST_P(future_of, a_call_that_ends_with_a_known_exception_is_no_failed_post) {
  ::testing::internal::CaptureStderr();
  const auto counts = in_world([] {
    const auto o = spawn<Oracle>(where());
    EXPECT_THROW(start(o)->fail().get(), std::out_of_range);
    try {  // one exception unwinds the stack: the other one is not told of
      const auto other = start(o)->fail();
      other.wait();
      o->fail();
    } catch (const std::out_of_range&) {
    }
    std::vector<future<void>> some;
    for (int i = 0; i < 3; ++i) some.push_back(start(o)->fail());
    EXPECT_THROW(when_all(std::move(some)).get(), std::out_of_range);
    quiescence();
  });
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(counts[0].failed_posts, 0U);
}

TEST_P(future_of, a_call_to_a_process_destroyed_meanwhile_fails_with_process_gone) {
  in_world([] {
    const auto slow = spawn(where(), [] { (void)receive<int>(); });
    auto end = start_destroy(slow);
    auto late = start_destroy(slow);
    send(slow, 1);
    try {
      end.get();
    } catch (const process_gone&) {  // the function ended by itself before it saw the message
    }
    EXPECT_THROW(late.get(), process_gone);
  });
}

TEST_P(future_of, then_calls_a_function_with_the_result) {
  in_world([] {
    const auto o = spawn<Oracle>(where());
    auto f = start(o)->answer(5).then([](int n) { return std::to_string(n + 1); });
    EXPECT_FALSE(f.ready());
    o->open();
    EXPECT_EQ(f.get(), "6");
    EXPECT_EQ(start(o)->now(1).then([](int n) { return n + 1; }).then([](int n) { return n * 10; }).get(), 20);
    bool called = false;
    start(o)->nothing().then([&] { called = true; }).get();
    EXPECT_TRUE(called);
  });
}

TEST_P(future_of, then_of_a_result_that_is_there_calls_at_once) {
  in_world([] {
    auto f = start(spawn<Oracle>(where()))->now(5);
    f.wait();
    bool called = false;
    auto g = f.then([&](int) { called = true; });
    EXPECT_TRUE(called);
    g.get();
  });
}

TEST_P(future_of, then_passes_on_the_exception_of_the_call_and_of_the_function) {
  in_world([] {
    const auto o = spawn<Oracle>(where());
    bool called = false;
    auto f = start(o)->fail().then([&] { called = true; });
    EXPECT_THROW(f.get(), std::out_of_range);
    EXPECT_FALSE(called);
    auto g = start(o)->now(1).then([](int) -> int { throw std::logic_error("in then"); });
    EXPECT_EQ(what_is_thrown<std::logic_error>([&] { (void)g.get(); }), "in then");
  });
}

TEST_P(future_of, then_runs_as_a_process_of_its_own_which_may_call_and_wait) {
  in_world([] {
    const auto o = spawn<Oracle>(where());
    auto started = start(o)->now(1).then([=](int) { return start(o)->now(2); });
    EXPECT_EQ(started.get(), 2);
    auto f = start(o)->answer(1).then([=](int n) {
      yield();
      const int there = o->now(n + 1);
      const int elsewhere = spawn<Oracle>(pe(1))->now(10);
      sleep_for(1ms);
      return there + elsewhere;
    });
    o->open();
    EXPECT_EQ(f.get(), 12);
  });
}

TEST_P(future_of, a_continuation_that_waits_is_waited_for) {
  in_world([] {
    const auto shut = spawn<Oracle>(where());
    const auto o = spawn<Oracle>(where());
    auto f = start(o)->now(1).then([=](int) { return shut->answer(1); });  // waits
    EXPECT_FALSE(f.wait_for(1ms));
    shut->open();
    EXPECT_EQ(f.get(), 1);
  });
}

TEST_P(future_of, then_may_give_what_cannot_be_sent) {
  in_world([] {
    struct Local {
      int* p;
    };
    int x = 4;
    EXPECT_EQ(*start(spawn<Oracle>(where()))->now(1).then([&](int) { return Local{&x}; }).get().p, 4);
  });
}

TEST_P(future_of, all_of_a_vector_has_the_results_in_order) {
  in_world([] {
    const auto o = spawn<Oracle>(where());
    std::vector<future<int>> some;
    for (int i = 0; i < 10; ++i) some.push_back(i % 2 == 0 ? start(o)->answer(i) : start(o)->now(i));
    some[1].wait();
    auto all = when_all(std::move(some));
    EXPECT_FALSE(all.ready());
    o->open();
    EXPECT_EQ(all.get(), (std::vector{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  });
}

TEST_P(future_of, all_of_none_is_ready) {
  in_world([] {
    EXPECT_TRUE(when_all(std::vector<future<int>>{}).get().empty());
    when_all(std::vector<future<void>>{}).get();
  });
}

TEST_P(future_of, all_of_several_types_is_a_tuple) {
  in_world([] {
    const auto o = spawn<Oracle>(where());
    auto all = when_all(start(o)->now(1), start(o)->text(), start(o)->owned(2));
    const auto [n, text, owned] = all.get();
    EXPECT_EQ(n, 1);
    EXPECT_EQ(text, "text");
    EXPECT_EQ(*owned, 2);
  });
}

TEST_P(future_of, all_fails_when_one_fails_but_not_before_all_have_ended) {
  in_world([] {
    const auto o = spawn<Oracle>(where());
    std::vector<future<void>> some;
    some.push_back(start(o)->fail());
    some.push_back(start(o)->nothing());
    auto late = start(o)->answer(1);
    some.push_back(late.then([](int) {}));
    auto all = when_all(std::move(some));
    start(o)->nothing().get();
    EXPECT_FALSE(all.ready());
    o->open();
    EXPECT_THROW(all.get(), std::out_of_range);
  });
}

TEST_P(future_of, any_is_the_first_that_ends_and_keeps_the_others) {
  in_world([] {
    const auto o = spawn<Oracle>(where());
    std::vector<future<int>> some;
    some.push_back(start(o)->answer(0));
    some.push_back(start(o)->now(1));
    some.push_back(start(o)->answer(2));
    auto first = when_any(std::move(some)).get();
    EXPECT_EQ(first.index, 1U);
    EXPECT_EQ(first.futures[1].get(), 1);
    o->open();
    EXPECT_EQ(first.futures[2].get(), 2);
    EXPECT_EQ(first.futures[0].get(), 0);
  });
}

TEST_P(future_of, any_of_some_that_are_ready_is_ready) {
  in_world([] {
    const auto o = spawn<Oracle>(where());
    std::vector<future<int>> some;
    for (int i = 0; i < 3; ++i) some.push_back(start(o)->now(i));
    for (auto& f : some) f.wait();
    auto any = when_any(std::move(some));
    EXPECT_TRUE(any.ready());
    EXPECT_EQ(any.get().index, 0U);
  });
}

TEST(future, that_is_empty_fails_with_usage_error) {
  in_world(1, [] {
    future<int> f;
    EXPECT_FALSE(f.valid());
    EXPECT_FALSE(f.ready());
    EXPECT_THROW((void)f.get(), usage_error);
    EXPECT_THROW(f.wait(), usage_error);
    EXPECT_THROW((void)f.then([](int) {}), usage_error);
    std::vector<future<int>> some(1);
    EXPECT_THROW((void)when_all(std::move(some)), usage_error);
    std::vector<future<int>> none;
    EXPECT_THROW((void)when_any(std::move(none)), usage_error);
    std::vector<future<int>> empty(2);
    EXPECT_THROW((void)when_any(std::move(empty)), usage_error);
    EXPECT_THROW((void)when_all(future<int>{}, future<int>{}), usage_error);
  });
}

TEST(future, belongs_to_the_pe_that_made_the_call) {
  in_world(2, [] {
    const auto o = spawn<Oracle>(pe(0));
    auto f = std::make_shared<future<int>>(start(o)->answer(1));
    const auto me = this_process<function>();
    spawn_here(pe(1), [f, me] {
      std::string said;
      try {
        (void)f->get();
      } catch (const usage_error& e) {
        said = e.what();
      }
      EXPECT_THROW((void)when_all(std::move(*f), future<int>{}), usage_error);
      send(me, said);
    });
    EXPECT_NE(receive<std::string>().find("belongs to PE 0"), std::string::npos);
  });
}

TEST(future, may_be_dropped_on_another_pe) {
  in_world(2, [] {
    const auto o = spawn<Oracle>(pe(0));
    const auto me = this_process<function>();
    for (int i = 0; i < 100; ++i) spawn_here(pe(1), [f = start(o)->owned(1), me] { send(me, 1); });
    for (int i = 0; i < 100; ++i) (void)receive<int>();
  });
}

TEST(future, replaces_another_by_assignment) {
  in_world(2, [] {
    const auto o = spawn<Oracle>(pe(1));
    auto f = start(o)->now(1);
    f = start(o)->now(2);
    EXPECT_EQ(f.get(), 2);
  });
}

// A coroutine that nobody waits for.
struct detached {
  struct promise_type {
    detached get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

detached add_up(remote<Oracle> o, remote<function> tell) {
  int sum = 0;
  for (int i = 0; i < 10; ++i) sum += co_await start(o)->now(i);
  co_await start(o)->nothing();
  try {
    co_await start(o)->fail();
  } catch (const std::out_of_range&) {
    sum += 100;
  }
  send(tell, sum);
}

TEST_P(future_of, a_call_can_be_awaited_by_a_coroutine) {
  in_world([] {
    add_up(spawn<Oracle>(where()), this_process<function>());
    EXPECT_EQ(receive<int>(), 145);
  });
}

TEST_P(future_of, a_call_that_fails_late_resumes_its_coroutine) {
  in_world([] {
    const auto o = spawn<Oracle>(where());
    const auto wait = [](remote<Oracle> oracle, remote<function> tell) -> detached {
      try {
        (void)co_await start(oracle)->fail_late();
      } catch (const std::range_error& e) {
        send(tell, std::string(e.what()));
      }
    };
    wait(o, this_process<function>());
    o->open();
    EXPECT_EQ(receive<std::string>(), "late");
  });
}

// A coroutine whose frame belongs to who started it.
struct owned_task {
  struct promise_type {
    owned_task get_return_object() {
      return {std::shared_ptr<void>(std::coroutine_handle<promise_type>::from_promise(*this).address(),
                                    [](void* p) { std::coroutine_handle<>::from_address(p).destroy(); })};
    }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
  std::shared_ptr<void> frame;
};

TEST_P(future_of, a_call_that_is_answered_late_leaves_a_destroyed_coroutine_alone) {
  in_world([] {
    const auto o = spawn<Oracle>(where());
    int resumed = 0;
    {
      const auto wait = [](remote<Oracle> oracle, int& r) -> owned_task {
        (void)co_await start(oracle)->answer(1);
        ++r;
      };
      const auto t = wait(o, resumed);
    }
    o->open();
    EXPECT_EQ(o->now(7), 7);
    quiescence();
    EXPECT_EQ(resumed, 0);
  });
}

/// Has a future that two of its methods want.
class Greedy {
 public:
  static constexpr bool orrery_reentrant = true;
  explicit Greedy(remote<Oracle> o) : f_(start(o)->answer(3)) {}
  Greedy(const Greedy&) = delete;
  Greedy& operator=(const Greedy&) = delete;
  int take() { return f_.get(); }
  bool look() { return f_.wait_for(1ns); }
  ORRERY_PROCESS_MEMBERS(Greedy, take, look)

 private:
  future<int> f_;
};

TEST_P(future_of, a_call_is_waited_for_by_one_method_only_and_another_one_hears_so) {
  in_world([] {
    const auto o = spawn<Oracle>(where());
    const auto g = spawn<Greedy>(here(), o);
    EXPECT_FALSE(g->look());
    auto first = start(g)->take();
    EXPECT_NE(what_is_thrown<usage_error>([&] { (void)g->take(); }).find("another method"), std::string::npos);
    EXPECT_THROW((void)g->look(), usage_error);
    o->open();
    EXPECT_EQ(first.get(), 3);
  });
}

TEST(future, of_very_many_calls_may_be_gathered) {
  in_world(2, [] {
    const auto o = spawn<Oracle>(pe(1));
    std::vector<future<int>> some;
    for (int i = 0; i < 20'000; ++i) some.push_back(start(o)->now(i));
    const auto values = when_all(std::move(some)).get();
    for (int i = 0; i < 20'000; ++i) ASSERT_EQ(values[i], i);
  });
}

TEST(future, may_have_a_very_long_chain_of_functions_after_it) {
  in_world(2, [] {
    const auto o = spawn<Oracle>(pe(1));
    auto f = start(o)->answer(0);
    for (int i = 0; i < 20'000; ++i) f = f.then([](int n) { return n + 1; });
    o->open();
    EXPECT_EQ(f.get(), 20'000);
  });
}

}  // namespace future_tests
}  // namespace orrery
