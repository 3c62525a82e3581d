// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>
#include <orrery/process/internal/test_world.hpp>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace orrery {
namespace idle_tests {

using testing::in_world;
using testing::what_is_thrown;

class Worker;
ORRERY_PROCESS(Worker, note, hop, wait_for, start_work, fail_when_idle, log);

/// Writes down what happens on its PE in which order.
class Worker {
 public:
  void note(int n) { log_.push_back(n); }
  /// A chain of messages between two processes; the last one is noted.
  void hop(remote<Worker> other, int left, int n) {
    if (left == 0) return note(n);
    post(other)->hop(this_process<Worker>(), left - 1, n);
  }
  int wait_for(remote<Worker> other) {
    other->note(-1);
    return 7;
  }
  /// Work for an idle PE, in the middle of a method that gives it messages before and after.
  void start_work(remote<Worker> other) {
    const auto me = this_process<Worker>();
    post(me)->note(1);
    when_idle([this] { note(100); });
    when_idle([this, me, other] {
      note(101);
      post(other)->hop(me, 50, 103);  // goes before the next work
      note(102);
    });
    when_idle([this] { note(104); });
    post(me)->note(2);
    post(other)->hop(me, 101, 3);
  }
  void fail_when_idle() {
    when_idle([] { throw std::runtime_error("idle hands"); });
  }
  std::vector<int> log() const { return log_; }

 private:
  std::vector<int> log_;
};

TEST(when_idle, runs_after_everything_that_is_there_in_the_order_of_the_calls) {
  in_world(1, [] {
    const auto a = spawn<Worker>(pe(0));
    const auto b = spawn<Worker>(pe(0));
    post(a)->start_work(b);
    quiescence();
    std::vector<int> both = a->log();
    const std::vector<int> others = b->log();
    both.insert(both.end(), others.begin(), others.end());
    EXPECT_EQ(a->log(), (std::vector{1, 2, 3, 100, 101, 102, 104})) << "103 is noted by the other";
    EXPECT_EQ(others, std::vector{103});
  });
}

TEST(when_idle, goes_behind_messages_that_it_has_caused) {
  in_world(1, [] {
    const auto a = spawn<Worker>(pe(0));
    const auto b = spawn<Worker>(pe(0));
    when_idle([=] { post(a)->hop(b, 50, 1); });
    when_idle([=] { post(a)->note(2); });
    quiescence();
    EXPECT_EQ(a->log(), (std::vector{1, 2}));
  });
}

TEST(when_idle, may_call_and_wait) {
  in_world(2, [] {
    const auto here = spawn<Worker>(pe(0));
    const auto there = spawn<Worker>(pe(1));
    int answer = 0;
    bool second = false;
    when_idle([&, there, here] {
      answer = there->wait_for(here);  // which calls back
      while (!second) sleep_for(std::chrono::milliseconds(1));  // the PE is idle
      answer *= 10;
    });
    when_idle([&] { second = true; });
    quiescence();
    EXPECT_EQ(answer, 70);
    EXPECT_EQ(here->log(), std::vector{-1});
  });
}

TEST(when_idle, is_work_for_quiescence) {
  in_world(2, [] {
    struct chain {
      static void go_on(std::shared_ptr<int> n) {
        if (++*n < 1000) when_idle([n] { go_on(n); });
      }
    };
    const auto n = std::make_shared<int>(0);
    when_idle([n] { chain::go_on(n); });
    quiescence();
    EXPECT_EQ(*n, 1000);
  });
}

TEST(when_idle, that_throws_is_reported_and_counted) {
  ::testing::internal::CaptureStderr();
  const auto counts = in_world(2, [] {
    const auto w = spawn<Worker>(pe(1));
    post(w)->fail_when_idle();
    quiescence();
    w->note(1);
    EXPECT_EQ(w->log(), std::vector{1});
  });
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("when_idle"), std::string::npos) << said;
  EXPECT_NE(said.find("idle hands"), std::string::npos) << said;
  EXPECT_EQ(counts[1].failed_posts, 1U);
}

TEST(when_idle, takes_its_function_with_it_and_ends_it) {
  auto held = std::make_shared<int>(0);
  in_world(1, [held] {
    when_idle([p = std::make_unique<int>(3), held] { *held += *p; });
    quiescence();
    EXPECT_EQ(*held, 3);
  });
  EXPECT_EQ(held.use_count(), 1);
}

// Work that never ends does not keep the program from ending, and is destroyed with it.
TEST(when_idle, ends_with_the_program) {
  auto held = std::make_shared<int>(0);
  in_world(2, [held] {
    struct chain {
      static void go_on(const std::shared_ptr<int>& n) {
        ++*n;
        when_idle([n] { go_on(n); });
      }
    };
    when_idle([held] { chain::go_on(held); });
    when_idle([held] { chain::go_on(held); });
    while (*held < 100) sleep_for(std::chrono::milliseconds(1));
  });
  EXPECT_GE(*held, 100);
  EXPECT_EQ(held.use_count(), 1);
}

TEST(when_idle, belongs_to_a_pe) {
  EXPECT_NE(what_is_thrown<usage_error>([] { when_idle([] {}); }).find("runtime"), std::string::npos);
}

TEST(when_idle, fetches_memory_that_may_be_gone) {
  in_world(1, [] {
    const auto a = spawn<Worker>(pe(0));
    const auto b = spawn<Worker>(pe(0));
    for (int n = 0; n < 100; ++n) {
      auto memory = std::make_unique<std::vector<double>>(100 * n);
      when_idle([=] { post(a)->hop(b, 20, n); }, std::as_bytes(std::span(*memory)));
    }
    quiescence();
    EXPECT_EQ(a->log().size(), 100U);
  });
}

}  // namespace idle_tests
}  // namespace orrery
