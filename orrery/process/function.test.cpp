// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/function.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <orrery/orrery.hpp>
#include <orrery/process/internal/test_world.hpp>
#include <orrery/process/spawn_here.hpp>

namespace orrery {
namespace function_tests {

using testing::in_world;
using testing::what_is_thrown;
using namespace std::chrono_literals;

ORRERY_AT_EACH_PLACE(process_function);

void echo(remote<function> to, int count) {
  for (int i = 0; i < count; ++i) send(to, receive<int>());
}

TEST_P(process_function, runs_with_its_arguments_and_answers_messages) {
  in_world([] {
    const auto f = spawn(where(), echo, this_process<function>(), 100);
    for (int i = 0; i < 100; ++i) send(f, i);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(receive<int>(), i);
  });
}

struct Greeting {
  std::string text;
  remote<function> to;
  void operator()(int n) const { send(to, text + std::to_string(n)); }
  template <class A>
  void serialize(A& a) {
    a & text & to;
  }
};

TEST_P(process_function, may_be_an_object_that_can_be_sent) {
  in_world([] {
    spawn(where(), Greeting{"number ", this_process<function>()}, 7);
    EXPECT_EQ(receive<std::string>(), "number 7");
  });
}

struct Deep {
  std::size_t stack_bytes = 1 << 20;
  void operator()(remote<function> to) const {
    volatile char frame[900 << 10];
    for (std::size_t i = 0; i < sizeof frame; i += 1024) frame[i] = 1;
    send(to, static_cast<int>(frame[0]));
  }
  template <class A>
  void serialize(A& a) {
    a & stack_bytes;
  }
};

TEST_P(process_function, has_as_large_a_stack_as_its_object_asks_for) {
  in_world([] {
    spawn(where(), Deep{}, this_process<function>());
    EXPECT_EQ(receive<int>(), 1);
    EXPECT_THROW(spawn(where(), Deep{std::size_t{2} << 30}, this_process<function>()), usage_error);
  });
}

void receives_until_it_has_been_stopped_twice() {
  for (int i = 0; i < 2; ++i) {
    try {
      (void)receive<int>();
    } catch (const stopped&) {
    }
  }
}

TEST_P(process_function, that_is_destroyed_twice_answers_both) {
  in_world([] {
    const auto f = spawn(where(), receives_until_it_has_been_stopped_twice);
    auto first = start_destroy(f);
    auto second = start_destroy(f);
    EXPECT_NO_THROW(first.get());
    EXPECT_THROW(second.get(), process_gone);
  });
}

TEST_P(process_function, takes_arguments_that_can_only_be_moved) {
  in_world([] {
    spawn(
        where(), [](std::unique_ptr<int> p, remote<function> to) { send(to, std::move(p)); }, std::make_unique<int>(3),
        this_process<function>());
    EXPECT_EQ(*receive<std::unique_ptr<int>>(), 3);
  });
}

TEST_P(process_function, receives_by_type_whatever_the_order) {
  in_world([] {
    const auto me = this_process<function>();
    spawn_here(where(), [me] {
      send(me, 1);
      send(me, std::string("two"));
      send(me, 3.0);
      send(me, 4);
    });
    EXPECT_EQ(receive<double>(), 3.0);
    EXPECT_EQ(receive<std::string>(), "two");
    EXPECT_EQ(receive<int>(), 1);
    EXPECT_EQ(receive<int>(), 4);
  });
}

TEST_P(process_function, receives_by_tag_whatever_the_order) {
  in_world([] {
    const auto me = this_process<function>();
    spawn_here(where(), [me] {
      for (int i = 0; i < 10; ++i) send(me, i, static_cast<std::uint64_t>(i % 3));
    });
    EXPECT_EQ(receive<int>(2), 2);
    EXPECT_EQ(receive<int>(1), 1);
    EXPECT_EQ(receive<int>(), 0);
    EXPECT_EQ(receive<int>(2), 5);
    for (const int i : {3, 4, 6, 7, 8, 9}) EXPECT_EQ(receive<int>(), i);
    EXPECT_FALSE(try_receive<int>());
  });
}

TEST_P(process_function, receives_nothing_when_the_time_is_over) {
  in_world([] {
    EXPECT_EQ(receive_for<int>(0ns), std::nullopt);
    EXPECT_EQ(receive_for<int>(1ms), std::nullopt);
    send(this_process<function>(), std::string("another type"));
    EXPECT_EQ(receive_for<int>(1ms), std::nullopt);
    EXPECT_EQ(receive_for<int>(1ms, 5), std::nullopt);
    const auto me = this_process<function>();
    spawn_here(where(), [me] { send(me, 5); });
    EXPECT_EQ(receive_for<int>(1h), 5);
    EXPECT_EQ(receive<std::string>(), "another type");
  });
}

TEST(blocked_functions, take_no_turn_of_their_pe_and_let_it_sleep) {
  in_world(1, [] {
    std::vector<remote<function>> blocked;
    for (int i = 0; i < 100; ++i)
      blocked.push_back(spawn(here(), [] {
        (void)receive<int>();
        (void)receive<int>();
      }));
    for (const auto& f : blocked) send(f, 1);
    yield();  // all have taken the first message and wait for the next
    const scheduler::counters before = scheduler::current_pe->count();
    sleep_for(20ms);
    const scheduler::counters& now = scheduler::current_pe->count();
    EXPECT_EQ(now.parks - before.parks, 1U);  // this function's own
    EXPECT_EQ(now.executed, before.executed);
    EXPECT_GE(now.sleeps - before.sleeps, 1U);  // the thread lies in the kernel
    for (const auto& f : blocked) send(f, 2);
  });
}

TEST_P(process_function, loses_no_message_that_comes_as_the_time_runs_out) {
  in_world([] {
    constexpr int count = 2000;
    const auto me = this_process<function>();
    spawn_here(where(), [me] {
      for (int i = 0; i < count; ++i) {
        send(me, i);
        if (i % 7 == 0) yield();
      }
    });
    int next = 0;
    while (next < count) {
      const auto got = receive_for<int>(std::chrono::nanoseconds(next * 37 % 3000));
      if (!got) continue;
      ASSERT_EQ(*got, next);
      ++next;
    }
    EXPECT_FALSE(try_receive<int>());
  });
}

TEST_P(process_function, tries_to_receive_without_waiting) {
  in_world([] {
    EXPECT_FALSE(try_receive<int>());
    const auto me = this_process<function>();
    send(me, 1, 7);
    EXPECT_FALSE(try_receive<int>(6));
    EXPECT_EQ(try_receive<int>(7), 1);
    EXPECT_FALSE(try_receive<int>());
  });
}

TEST_P(process_function, may_call_and_wait_between_two_messages) {
  in_world([] {
    const auto me = this_process<function>();
    const auto other = spawn(pe(1), [] {
      for (;;) {
        const auto from = receive<remote<function>>();
        send(from, 10);
      }
    });
    const auto f = spawn_here(where(), [=] {
      int sum = 0;
      for (int i = 0; i < 20; ++i) {
        sum += receive<int>(1);
        send(other, this_process<function>());
        sum += receive<int>(0);
        sleep_for(1us);
        yield();
      }
      send(me, sum);
    });
    for (int i = 0; i < 20; ++i) send(f, i, 1);
    EXPECT_EQ(receive<int>(), 190 + 200);
  });
}

TEST_P(process_function, that_has_ended_is_gone_for_senders) {
  ::testing::internal::CaptureStderr();
  const auto counts = in_world([] {
    const auto me = this_process<function>();
    const auto f = spawn_here(where(), [me] { send(me, 1); });
    (void)receive<int>();
    EXPECT_THROW(destroy(f), process_gone);  // it has ended when that comes back
    send(f, 2);
    EXPECT_TRUE(try_send(f, 2));
    spawn_here(where(), [me] { send(me, 3); });
    EXPECT_EQ(receive<int>(), 3);
  });
  EXPECT_EQ(counts[GetParam()].failed_posts, 2U);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("destroyed"), std::string::npos);
}

/// Sends when it is destroyed.
struct goodbye {
  remote<function> to;
  explicit goodbye(remote<function> t) : to(t) {}
  goodbye(const goodbye&) = delete;
  goodbye& operator=(const goodbye&) = delete;
  ~goodbye() { send(to, std::string("goodbye")); }
};

TEST_P(process_function, is_unwound_when_it_is_destroyed_and_destroy_waits_for_that) {
  in_world([] {
    const auto f = spawn(
        where(),
        [](remote<function> to) {
          const goodbye last(to);
          for (;;) (void)receive<int>();
        },
        this_process<function>());
    for (int i = 0; i < 10; ++i) send(f, i);
    destroy(f);
    EXPECT_EQ(try_receive<std::string>(), "goodbye");
    EXPECT_THROW(destroy(f), process_gone);
  });
}

TEST_P(process_function, that_was_destroyed_and_receives_again_is_told_why_each_time) {
  in_world([] {
    const auto f = spawn(
        where(),
        [](remote<function> to) {
          for (int i = 0; i < 3; ++i) send(to, what_is_thrown<stopped>([] { (void)receive<int>(); }));
        },
        this_process<function>());
    destroy(f);
    for (int i = 0; i < 3; ++i) {
      const auto why = try_receive<std::string>();
      EXPECT_NE(why.value_or("").find("receive: the process was destroyed"), std::string::npos) << why.value_or("");
    }
  });
}

TEST_P(process_function, takes_the_messages_that_were_sent_before_it_was_destroyed) {
  in_world([] {
    const auto f = spawn(
        where(),
        [](remote<function> to) {
          for (;;) send(to, receive<int>());
        },
        this_process<function>());
    for (int i = 0; i < 100; ++i) send(f, i);
    destroy(f);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(try_receive<int>(), i);
  });
}

TEST_P(process_function, that_throws_is_reported_and_counted) {
  ::testing::internal::CaptureStderr();
  const auto counts = in_world([] {
    const auto f = spawn(where(), [] { throw std::runtime_error("thrown by a function"); });
    EXPECT_THROW(destroy(f), process_gone);
  });
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("thrown by a function"), std::string::npos);
  EXPECT_EQ(counts[GetParam()].failed_posts, 1U);
}

TEST_P(process_function, may_be_one_of_very_many_in_a_ring) {
  in_world([] {
    constexpr int size = 500;
    std::vector<remote<function>> ring;
    for (int i = 0; i < size; ++i)
      ring.push_back(spawn(where(), [] {
        const auto next = receive<remote<function>>();
        for (;;) {
          const int n = receive<int>();
          send(next, n - 1);
        }
      }));
    for (int i = 0; i + 1 < size; ++i) send(ring[i], ring[i + 1]);
    send(ring.back(), this_process<function>());
    for (int round = 0; round < 20; ++round) {
      send(ring.front(), 1000);
      EXPECT_EQ(receive<int>(), 1000 - size);
    }
  });
}

struct Method {
  void receives() { (void)receive<int>(); }
  bool knows_itself(remote<Method> itself) { return this_process<Method>() == itself; }
  void is_another() { (void)this_process<std::string>(); }
};
ORRERY_PROCESS(Method, receives, knows_itself, is_another);

TEST_P(process_function, alone_can_receive) {
  in_world([] {
    const auto m = spawn<Method>(where());
    const std::string said = what_is_thrown<usage_error>([&] { m->receives(); });
    EXPECT_NE(said.find("receive: called in the method "), std::string::npos) << said;
    EXPECT_NE(said.find("Method::receives"), std::string::npos) << said;
    EXPECT_TRUE(said.ends_with("or spawn a function")) << said;
  });
}

TEST(receive_outside, of_the_runtime_fails_with_usage_error) {
  EXPECT_THROW((void)receive<int>(), usage_error);
  EXPECT_THROW((void)try_receive<int>(), usage_error);
  EXPECT_THROW(send(remote<function>{}, 1), usage_error);
  EXPECT_THROW((void)this_process<function>(), usage_error);
}

TEST_P(process_function, knows_itself) {
  in_world([] {
    const auto m = spawn<Method>(where());
    EXPECT_TRUE(m->knows_itself(m));
    EXPECT_THROW(m->is_another(), usage_error);
    EXPECT_THROW((void)this_process<Method>(), usage_error);
  });
}

TEST_P(process_function, receives_large_messages_unharmed) {
  in_world([] {
    std::array<int, 1000> many{};
    std::iota(many.begin(), many.end(), 0);
    const auto me = this_process<function>();
    spawn_here(where(), [=] {
      send(me, many);
      send(me, std::vector<int>(many.begin(), many.end()));
    });
    const auto vector = receive<std::vector<int>>();
    EXPECT_TRUE(std::equal(vector.begin(), vector.end(), many.begin(), many.end()));
    EXPECT_EQ((receive<std::array<int, 1000>>()), many);
  });
}

}  // namespace function_tests
}  // namespace orrery
