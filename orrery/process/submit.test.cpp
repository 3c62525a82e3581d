// SPDX-License-Identifier: Apache-2.0
// Threads that are no PEs, and how they get in.
#include <atomic>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <orrery/orrery.hpp>
#include <orrery/process/internal/test_world.hpp>
#include <orrery/process/submit.hpp>

namespace orrery {
namespace submit_tests {

using testing::in_world;
using testing::what_is_thrown;

class Counter {
 public:
  int add(int n) { return sum_ += n; }
  void fail() { throw std::out_of_range("too far"); }
  ORRERY_PROCESS_MEMBERS(Counter, add, fail)

 private:
  int sum_ = 0;
};

// The body's processes go on meanwhile.
template <class F>
void in_thread(F f) {
  const outside_work work;
  const auto me = this_process<function>();
  std::thread t([me, f] {
    f();
    submit([me] { send(me, std::string("done")); }).get();
  });
  (void)receive<std::string>();
  t.join();
}

TEST(submit, runs_a_function_as_a_process_and_gives_its_result) {
  for (const std::uint32_t pes : {1U, 3U})
    in_world(pes, [] {
      const auto c = spawn<Counter>(pe(world_pes() - 1));
      in_thread([c] {
        EXPECT_EQ(submit([c] { return c->add(2); }).get(), 2);
        submit([c] {
          yield();
          c->add(3);
        }).get();
        auto owned = std::make_unique<int>(4);  // need not be sent
        const auto result =
            submit([c, owned = std::move(owned)] { return std::make_unique<int>(c->add(*owned)); }).get();
        EXPECT_EQ(*result, 9);
      });
      EXPECT_EQ(c->add(0), 9);
    });
}

TEST(submit, gives_what_the_function_throws) {
  in_world(2, [] {
    const auto c = spawn<Counter>(pe(1));
    in_thread([c] {
      auto f = submit([c] { c->fail(); });
      EXPECT_EQ(what_is_thrown<std::out_of_range>([&] { f.get(); }), "too far");
    });
  });
}

TEST(submit, may_be_called_by_many_threads_at_once) {
  in_world(2, [] {
    const outside_work work;
    const auto me = this_process<function>();
    const auto c = spawn<Counter>(pe(1));
    constexpr int threads = 4;
    constexpr int times = 200;
    std::vector<std::thread> all;
    for (int t = 0; t < threads; ++t)
      all.emplace_back([=] {
        for (int i = 0; i < times; ++i) (void)submit([c] { return c->add(1); });
        submit([me] { send(me, 1); }).get();
      });
    for (int t = 0; t < threads; ++t) (void)receive<int>();
    for (auto& t : all) t.join();
    quiescence();
    EXPECT_EQ(c->add(0), threads * times);
  });
}

TEST(submit, fails_with_stopped_when_the_world_has_ended) {
  std::future<void> late;
  in_world(2, [&late] {
    const auto me = this_process<function>();
    late = submit([me] {
      send(me, 1);
      (void)receive<std::string>();  // nobody sends one
    });
    (void)receive<int>();
  });
  EXPECT_THROW(late.get(), stopped);
  EXPECT_THROW((void)submit([] {}), stopped);
}

// Nobody waits for the answers, and the thread goes on until it is told.
TEST(submit, goes_on_while_the_world_ends) {
  for (const std::uint32_t pes : {1U, 2U})
    for (int round = 0; round < 5; ++round) {
      std::thread submits;
      std::vector<std::future<int>> all;
      in_world(pes, [&] {
        const outside_work of_the_thread;
        const auto me = this_process<function>();
        submits = std::thread([&all, me] {
          try {
            submit([me] { send(me, 1); }).get();
            for (;;) all.push_back(submit([] { return 1; }));
          } catch (const stopped&) {  // NOLINT(bugprone-empty-catch): what it waits for
          }
        });
        (void)receive<int>();
        sleep_for(std::chrono::milliseconds(1));
      });
      submits.join();
      for (auto& f : all) try {
          EXPECT_EQ(f.get(), 1);
        } catch (const stopped&) {  // NOLINT(bugprone-empty-catch): it had not ended
        }
    }
}

TEST(submit, is_what_the_error_of_another_thread_names) {
  in_world(2, [] {
    const auto c = spawn<Counter>(pe(0));
    std::string what;
    std::thread([&] { what = what_is_thrown<usage_error>([&] { c->add(1); }); }).join();
    EXPECT_NE(what.find("orrery::submit"), std::string::npos) << what;
  });
}

}  // namespace submit_tests
}  // namespace orrery
