// SPDX-License-Identifier: Apache-2.0
#include <orrery/task/task.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <orrery/process/detail/local_waits.hpp>
#include <orrery/process/function.hpp>
#include <orrery/process/internal/test_world.hpp>

// Tests of the C interface, as a C program uses it, but for the captures of the bodies. Each runs
// on one PE, on two, and on two simulated machines whose messages take random times.
namespace task_tests {

using namespace std::string_literals;

struct way {
  const char* name;
  const char* option;
};

class task : public ::testing::TestWithParam<way> {
 protected:
  static bool on_one_pe() { return GetParam().name == "one_pe"s; }
  static void in_world(orrery::testing::test_body body) {
    std::vector<std::string> words{"test", GetParam().option, "--orrery-quiet"};
    std::vector<char*> argv;
    for (std::string& w : words) argv.push_back(w.data());
    EXPECT_EQ(orrery::run(static_cast<int>(argv.size()), argv.data(),
                          [&](const orrery::args&) {
                            body();
                            return 0;
                          }),
              0);
  }
  // The last PE: another one where there are two.
  static orrery_place there() { return orrery_pe(orrery_pes() - 1); }
  static orrery_task create(orrery_task_function run, const void* argument = nullptr, std::size_t size = 0) {
    orrery_task t{};
    EXPECT_EQ(orrery_create(run, argument, size, there(), &t), ORRERY_OK) << orrery_error();
    return t;
  }
};
INSTANTIATE_TEST_SUITE_P(on, task,
                         ::testing::Values(way{"one_pe", "--orrery-pes=1"}, way{"two_pes", "--orrery-pes=2"},
                                           way{"machines", "--orrery-sim=machines=2,jitter=5us,seed=1"},
                                           way{"machines_of_another_seed",
                                               "--orrery-sim=machines=2,jitter=5us,seed=2"}),
                         [](const auto& of) { return std::string(of.param.name); });

void echo(void*, std::size_t) {
  orrery_message m;
  while (orrery_receive(&m, ORRERY_FOREVER) == ORRERY_OK) {
    EXPECT_EQ(orrery_send_bytes(m.sender, m.tag, m.data, m.size, ORRERY_WAIT), ORRERY_OK);
    orrery_release(&m);
  }
}

std::string take(std::uint64_t tag) {
  orrery_message m;
  if (orrery_receive_tag(tag, &m, ORRERY_FOREVER) != ORRERY_OK) return "(" + std::string(orrery_error()) + ")";
  std::string text(static_cast<const char*>(m.data), m.size);
  orrery_release(&m);
  return text;
}
void say(orrery_task to, std::uint64_t tag, const std::string& text) {
  EXPECT_EQ(orrery_send_bytes(to, tag, text.data(), text.size(), ORRERY_WAIT), ORRERY_OK) << orrery_error();
}

// Stops a task, and returns when it has ended.
void stop_and_join(orrery_task t) {
  EXPECT_EQ(orrery_stop(t), ORRERY_OK);
  EXPECT_EQ(orrery_join(t, ORRERY_FOREVER), ORRERY_OK);
}
// The task that was given as the argument.
orrery_task teller_in(const void* argument) {
  orrery_task t{};
  std::memcpy(&t, argument, sizeof t);
  return t;
}

TEST_P(task, answers_messages_and_knows_who_sent_them) {
  in_world([] {
    const orrery_task e = create(echo);
    for (std::uint64_t i = 0; i < 100; ++i) say(e, i, std::to_string(i));
    for (std::uint64_t i = 0; i < 100; ++i) {
      orrery_message m;
      ASSERT_EQ(orrery_receive(&m, ORRERY_FOREVER), ORRERY_OK);
      EXPECT_EQ(m.tag, i);
      EXPECT_TRUE(orrery_task_same(m.sender, e));
      EXPECT_EQ(std::string(static_cast<char*>(m.data), m.size), std::to_string(i));
      orrery_release(&m);
      orrery_release(&m);  // does nothing
    }
  });
}

TEST_P(task, receives_by_tag_whatever_the_order) {
  in_world([] {
    const orrery_task e = create(echo);
    for (const std::uint64_t tag : {3U, 1U, 2U, 1U}) say(e, tag, "tag " + std::to_string(tag));
    EXPECT_EQ(take(2), "tag 2");
    EXPECT_EQ(take(1), "tag 1");
    EXPECT_EQ(take(3), "tag 3");
    EXPECT_EQ(take(1), "tag 1");
  });
}

TEST_P(task, receives_messages_of_any_size_and_may_change_them) {
  in_world([] {
    const orrery_task e = create(echo);
    for (const std::size_t size : {0U, 1U, 15U, 16U, 4000U, 4064U, 4065U, 5000U, 100'000U, 3'000'000U}) {
      const std::string text(size, static_cast<char>('a' + size % 7));
      say(e, 1, text);
      orrery_message m;
      ASSERT_EQ(orrery_peek(&m, ORRERY_FOREVER), ORRERY_OK);
      EXPECT_EQ(m.size, size);
      ASSERT_EQ(orrery_receive(&m, ORRERY_FOREVER), ORRERY_OK);
      EXPECT_TRUE(std::string(static_cast<char*>(m.data), m.size) == text) << size;
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(m.data) % 16, 0U);
      std::memset(m.data, 1, m.size);
      orrery_release(&m);
    }
  });
}

TEST_P(task, finds_nothing_where_nothing_is) {
  in_world([] {
    orrery_message m;
    EXPECT_EQ(orrery_receive(&m, ORRERY_NOW), ORRERY_EMPTY);
    EXPECT_EQ(orrery_receive_tag(1, &m, ORRERY_NOW), ORRERY_EMPTY);
    EXPECT_EQ(orrery_peek(&m, ORRERY_NOW), ORRERY_EMPTY);
    EXPECT_EQ(orrery_drop(), ORRERY_EMPTY);
    EXPECT_EQ(orrery_receive(&m, 1000), ORRERY_TIMEOUT);
    say(orrery_self(), 7, "seven");
    EXPECT_EQ(orrery_receive_tag(1, &m, 1000), ORRERY_TIMEOUT);
    EXPECT_EQ(take(7), "seven");
  });
}

TEST_P(task, peeks_and_drops_the_oldest_message) {
  in_world([] {
    const orrery_task e = create(echo);
    say(e, 4, "four");
    say(e, 5, "five");
    EXPECT_EQ(orrery_message_notify(), ORRERY_OK);
    orrery_message m;
    ASSERT_EQ(orrery_peek(&m, ORRERY_FOREVER), ORRERY_OK);
    EXPECT_EQ(m.tag, 4U);
    EXPECT_EQ(m.size, 4U);
    EXPECT_EQ(m.data, nullptr);
    EXPECT_EQ(orrery_drop(), ORRERY_OK);
    EXPECT_EQ(take(5), "five");
  });
}

TEST_P(task, that_asks_for_messages_in_a_loop_lets_others_run) {
  in_world([] {
    const orrery_task e = create(echo);
    say(e, 1, "x");
    while (orrery_message_immediate()) {
    }
    EXPECT_EQ(take(1), "x");
    EXPECT_TRUE(orrery_message_immediate());
  });
}

// Each way to poll, by a task on the PE of the one that it waits for.
TEST_P(task, that_polls_never_keeps_its_pe_from_others) {
  in_world([] {
    const auto here = [](orrery_task_function run) {
      orrery_task t{};
      EXPECT_EQ(orrery_create(run, nullptr, 0, orrery_here(), &t), ORRERY_OK);
      return t;
    };
    const orrery_task polls_now = here([](void*, std::size_t) {
      orrery_message m;
      orrery_status said{};
      while ((said = orrery_receive(&m, ORRERY_NOW)) == ORRERY_EMPTY) {
      }
      if (said != ORRERY_OK) return;
      say(m.sender, 1, "now");
      orrery_release(&m);
    });
    const auto by_strategy = [](void*, std::size_t) {
      orrery_message m;
      int told = 0;
      if (orrery_receive_tag(1, &m, ORRERY_FOREVER) != ORRERY_OK) return;
      std::memcpy(&told, m.data, sizeof told);
      const orrery_task teller = m.sender;
      orrery_release(&m);
      EXPECT_EQ(orrery_set_strategy(static_cast<orrery_strategy>(told)), ORRERY_OK);
      EXPECT_EQ(orrery_receive(&m, 1000), ORRERY_TIMEOUT);
      say(teller, 2, "nothing came");
      while (orrery_receive(&m, ORRERY_FOREVER) == ORRERY_OK) {
        say(m.sender, 2, "got it");
        orrery_release(&m);
      }
    };
    for (const int strategy : {ORRERY_YIELD, ORRERY_IMMEDIATE, ORRERY_NOTIFY}) {
      const orrery_task t = here(by_strategy);
      EXPECT_EQ(orrery_send_bytes(t, 1, &strategy, sizeof strategy, ORRERY_WAIT), ORRERY_OK);
      EXPECT_EQ(take(2), "nothing came");
      say(t, 3, "x");
      EXPECT_EQ(take(2), "got it");
      EXPECT_EQ(orrery_stop(t), ORRERY_OK);
      EXPECT_EQ(orrery_join(t, ORRERY_FOREVER), ORRERY_OK);
    }
    say(polls_now, 1, "x");
    EXPECT_EQ(take(1), "now");
    EXPECT_EQ(orrery_set_strategy(static_cast<orrery_strategy>(7)), ORRERY_USAGE);
  });
}

TEST_P(task, has_its_own_copy_of_its_argument) {
  in_world([] {
    struct hello {
      orrery_task to;
      char text[100];
    };
    hello h{orrery_self(), "good morning"};
    const auto run = [](void* argument, std::size_t size) {
      const hello& mine = *static_cast<hello*>(argument);
      EXPECT_EQ(size, sizeof(hello));
      say(mine.to, 1, mine.text);
    };
    create(run, &h, sizeof h);
    h = {};
    EXPECT_EQ(take(1), "good morning");
  });
}

TEST_P(task, has_as_large_a_stack_as_it_asks_for) {
  in_world([] {
    constexpr std::size_t much = 700 << 10;
    const auto deep = [](void*, std::size_t) {
      volatile char frame[much];
      for (std::size_t i = 0; i < much; i += 1024) frame[i] = 1;
      orrery_yield();
      frame[0] = 2;
    };
    for (int i = 0; i < 3; ++i) {
      orrery_task large{};
      ASSERT_EQ(orrery_create_with_stack(deep, nullptr, 0, much + (64 << 10), there(), &large), ORRERY_OK);
      // one with the usual stack beside it
      EXPECT_EQ(orrery_join(create(echo), ORRERY_NOW), ORRERY_TIMEOUT);
      EXPECT_EQ(orrery_join(large, ORRERY_FOREVER), ORRERY_OK);
    }
    orrery_task none{};
    EXPECT_EQ(orrery_create_with_stack(deep, nullptr, 0, (std::size_t{1} << 30) + 1, there(), &none), ORRERY_USAGE);
    EXPECT_NE(std::string(orrery_error()).find("1 GiB"), std::string::npos) << orrery_error();
    EXPECT_TRUE(orrery_task_is_null(none));
  });
}

TEST_P(task, that_has_ended_is_joined_and_gone) {
  in_world([] {
    const orrery_task e = create([](void*, std::size_t) {
      orrery_message m;
      if (orrery_receive(&m, ORRERY_FOREVER) == ORRERY_OK) orrery_release(&m);
    });
    EXPECT_EQ(orrery_join(e, 1000), ORRERY_TIMEOUT);
    EXPECT_NE(std::string(orrery_error()).find("has not ended"), std::string::npos);
    say(e, 1, "end");
    EXPECT_EQ(orrery_join(e, ORRERY_FOREVER), ORRERY_OK) << orrery_error();
    EXPECT_EQ(orrery_join(e, ORRERY_FOREVER), ORRERY_OK);
    EXPECT_EQ(orrery_join(orrery_self(), ORRERY_FOREVER), ORRERY_USAGE);
    EXPECT_EQ(orrery_join({}, ORRERY_FOREVER), ORRERY_USAGE);
    if (on_one_pe()) {
      EXPECT_EQ(orrery_send_bytes(e, 1, "", 0, ORRERY_WAIT), ORRERY_GONE);
      EXPECT_TRUE(std::string(orrery_error()).starts_with("orrery_send_bytes: task ")) << orrery_error();
      EXPECT_TRUE(std::string(orrery_error()).ends_with(" has ended")) << orrery_error();
    }
  });
}

TEST_P(task, may_be_joined_by_many) {
  in_world([] {
    const orrery_task e = create(echo);
    const auto joins = [](void* argument, std::size_t) {
      orrery_task tasks[2];
      std::memcpy(tasks, argument, sizeof tasks);
      say(tasks[1], 1, std::to_string(orrery_join(tasks[0], ORRERY_FOREVER)));
    };
    const orrery_task both[2] = {e, orrery_self()};
    for (int i = 0; i < 20; ++i) create(joins, both, sizeof both);
    say(e, 2, "x");
    EXPECT_EQ(take(2), "x");
    EXPECT_EQ(orrery_stop(e), ORRERY_OK);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(take(1), "0");
  });
}

TEST_P(task, that_watches_another_is_told_of_its_end) {
  in_world([] {
    const orrery_task e = create(echo);
    EXPECT_EQ(orrery_watch(e, 77), ORRERY_OK);
    EXPECT_EQ(orrery_watch({}, 77), ORRERY_USAGE);
    say(e, 1, "x");
    EXPECT_EQ(take(1), "x");
    EXPECT_EQ(orrery_message_immediate(), true);
    EXPECT_EQ(orrery_stop(e), ORRERY_OK);
    for (const std::uint64_t tag : {77U, 78U}) {
      orrery_message m;
      ASSERT_EQ(orrery_receive_tag(tag, &m, ORRERY_FOREVER), ORRERY_OK);
      ASSERT_EQ(m.size, sizeof(orrery_ended));
      const auto& ended = *static_cast<orrery_ended*>(m.data);
      EXPECT_TRUE(orrery_task_same(ended.task, e));
      EXPECT_EQ(ended.status, ORRERY_OK);
      orrery_release(&m);
      EXPECT_EQ(orrery_watch(e, 78), ORRERY_OK);  // once more, when it has ended
    }
  });
}

std::size_t watches_here() { return orrery::detail::local_waits::of(*orrery::scheduler::current_pe).ends().count(); }
std::size_t watches_of(orrery_task t) { return orrery::call<&watches_here>(orrery::pe(t.pe)); }

TEST_P(task, that_waits_in_vain_for_an_end_leaves_nothing_behind) {
  in_world([] {
    const orrery_task e = create(echo);
    say(e, 1, "it runs");
    EXPECT_EQ(take(1), "it runs");
    const std::size_t before = watches_of(e);
    for (int i = 0; i < 50; ++i) EXPECT_EQ(orrery_join(e, 1000), ORRERY_TIMEOUT);
    EXPECT_EQ(watches_of(e), before);
    stop_and_join(e);
  });
}

TEST_P(task, that_has_watched_another_and_ends_leaves_nothing_behind) {
  in_world([] {
    const auto watches = [](void* argument, std::size_t) {
      EXPECT_EQ(orrery_watch(teller_in(argument), 1), ORRERY_OK);
      EXPECT_EQ(orrery_watch(teller_in(argument), 2), ORRERY_OK);
    };
    const orrery_task e = create(echo);
    say(e, 1, "it runs");
    EXPECT_EQ(take(1), "it runs");
    const std::size_t before = watches_of(e);
    for (const orrery_place where : {orrery_here(), there()}) {
      for (int i = 0; i < 20; ++i) {
        orrery_task t{};
        EXPECT_EQ(orrery_create(watches, &e, sizeof e, where, &t), ORRERY_OK);
        EXPECT_EQ(orrery_join(t, ORRERY_FOREVER), ORRERY_OK);
      }
    }
    EXPECT_EQ(watches_of(e), before);
    stop_and_join(e);
  });
}

TEST(function_that_a_task_watches, is_reported_if_it_throws) {
  ::testing::internal::CaptureStderr();
  const auto counts = orrery::testing::in_world(2, [] {
    const auto f = orrery::spawn(orrery::pe(1), [] {
      (void)orrery::receive<int>();
      throw std::runtime_error("thrown by a function");
    });
    const orrery_task watched{f.address().pe, f.address().slot, f.address().generation};
    EXPECT_EQ(orrery_watch(watched, 7), ORRERY_OK);
    orrery::send(f, 1);
    EXPECT_EQ(orrery_join(watched, ORRERY_FOREVER), ORRERY_OK);
    EXPECT_EQ(take(7).size(), sizeof(orrery_ended));
  });
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("thrown by a function"), std::string::npos);
  EXPECT_EQ(counts[1].failed_posts, 1U);
}

TEST_P(task, that_watches_one_on_no_pe_is_told_so) {
  in_world([] {
    EXPECT_EQ(orrery_watch({99, 1, 1}, 77), ORRERY_NO_PLACE);
    EXPECT_NE(std::string(orrery_error()).find("orrery_watch: pe(99)"), std::string::npos) << orrery_error();
  });
}

TEST_P(task, that_is_stopped_takes_what_was_sent_before_and_ends) {
  in_world([] {
    const orrery_task e = create(echo);
    for (int i = 0; i < 10; ++i) say(e, 1, std::to_string(i));
    EXPECT_EQ(orrery_stop(e), ORRERY_OK);
    EXPECT_EQ(orrery_join(e, ORRERY_FOREVER), ORRERY_OK);
    for (int i = 0; i < 10; ++i) EXPECT_EQ(take(1), std::to_string(i));
  });
}

TEST_P(task, that_does_not_listen_when_it_is_to_end_is_ended) {
  in_world([] {
    const auto deaf = [](void* argument, std::size_t) {
      struct last {
        orrery_task to;
        ~last() { (void)orrery_send_bytes(to, 2, "unwound", 7, ORRERY_TRY); }
      } said{};
      std::memcpy(&said.to, argument, sizeof said.to);
      int times = 0;
      for (orrery_message m;;)
        if (orrery_receive(&m, ORRERY_FOREVER) == ORRERY_STOPPED)
          (void)orrery_send_bytes(said.to, 1, std::to_string(++times).data(), 1, ORRERY_TRY);
    };
    const orrery_task me = orrery_self();
    const orrery_task e = create(deaf, &me, sizeof me);
    EXPECT_EQ(orrery_stop(e), ORRERY_OK);
    EXPECT_EQ(orrery_join(e, ORRERY_FOREVER), ORRERY_OK);
    EXPECT_EQ(take(1), "1");
    EXPECT_EQ(take(2), "unwound");
    create(deaf, &me, sizeof me);  // and at the end of the world
  });
}

TEST_P(task, that_asks_for_messages_in_a_loop_is_told_to_end_by_receive) {
  in_world([] {
    const auto asks = [](void* argument, std::size_t) {
      const orrery_task to = teller_in(argument);
      do {
        while (!orrery_message_immediate()) {
          orrery_message m;
          if (orrery_receive(&m, ORRERY_FOREVER) == ORRERY_STOPPED) return say(to, 1, "told");
          orrery_release(&m);
        }
      } while (orrery_sleep(1000) == ORRERY_OK);
    };
    const orrery_task me = orrery_self();
    const orrery_task e = create(asks, &me, sizeof me);
    say(e, 1, "x");
    stop_and_join(e);
    EXPECT_EQ(take(1), "told");
  });
}

// However it goes on to ask for messages when it was told so. The first calls nothing that says it.
TEST_P(task, that_polls_when_it_is_to_end_is_ended) {
  in_world([] {
    const std::vector<orrery_task_function> ways{[](void*, std::size_t) {
                                                   for (;;) (void)orrery_message_immediate();
                                                 },
                                                 [](void*, std::size_t) {
                                                   for (orrery_message m;;)
                                                     if (!orrery_message_immediate())
                                                       (void)orrery_receive(&m, ORRERY_FOREVER);
                                                 },
                                                 [](void*, std::size_t) {
                                                   for (orrery_message m;; orrery_release(&m))
                                                     (void)orrery_receive(&m, ORRERY_NOW);
                                                 },
                                                 [](void*, std::size_t) {
                                                   for (orrery_message m;;) (void)orrery_peek(&m, ORRERY_NOW);
                                                 },
                                                 [](void*, std::size_t) {
                                                   EXPECT_EQ(orrery_set_strategy(ORRERY_YIELD), ORRERY_OK);
                                                   for (orrery_message m;; orrery_release(&m))
                                                     (void)orrery_receive(&m, ORRERY_FOREVER);
                                                 },
                                                 [](void*, std::size_t) {
                                                   EXPECT_EQ(orrery_set_strategy(ORRERY_IMMEDIATE), ORRERY_OK);
                                                   for (orrery_message m;; orrery_release(&m))
                                                     (void)orrery_receive(&m, 1000);
                                                 },
                                                 [](void*, std::size_t) {
                                                   EXPECT_EQ(orrery_set_strategy(ORRERY_YIELD), ORRERY_OK);
                                                   for (orrery_message m;;)
                                                     (void)orrery_receive_tag(7, &m, ORRERY_FOREVER);
                                                 }};
    for (const auto way : ways) stop_and_join(create(way));
    create(ways.front());  // and at the end of the world
  });
}

TEST_P(task, that_is_to_end_may_take_what_is_left_without_waiting) {
  in_world([] {
    const auto drains = [](void* argument, std::size_t) {
      const orrery_task to = teller_in(argument);
      orrery_message m;
      int left = 0;
      EXPECT_EQ(orrery_receive(&m, ORRERY_FOREVER), ORRERY_STOPPED);
      EXPECT_EQ(m.handle_, nullptr);
      orrery_status said = ORRERY_OK;
      for (; (said = orrery_receive(&m, ORRERY_NOW)) == ORRERY_OK; orrery_release(&m)) ++left;
      EXPECT_EQ(said, ORRERY_STOPPED);
      EXPECT_EQ(orrery_drop(), ORRERY_STOPPED);
      say(to, 1, std::to_string(left));
    };
    const orrery_task me = orrery_self();
    orrery_task e{};
    ASSERT_EQ(orrery_create(drains, &me, sizeof me, orrery_here(), &e), ORRERY_OK);
    // It has not begun yet.
    EXPECT_EQ(orrery_stop(e), ORRERY_OK);
    for (int i = 0; i < 5; ++i) say(e, 2, "late");
    EXPECT_EQ(orrery_join(e, ORRERY_FOREVER), ORRERY_OK);
    EXPECT_EQ(take(1), "5");
  });
}

TEST_P(task, that_receives_nothing_may_release_the_message) {
  in_world([] {
    const auto expect_zero = [](const orrery_message& m) {
      EXPECT_EQ(m.data, nullptr);
      EXPECT_EQ(m.handle_, nullptr);
      EXPECT_EQ(m.size, 0U);
    };
    orrery_message m;
    for (const std::int64_t time : {ORRERY_NOW, std::int64_t{1000}}) {
      std::memset(&m, 0x55, sizeof m);
      EXPECT_NE(orrery_receive(&m, time), ORRERY_OK);
      expect_zero(m);
      orrery_release(&m);
    }
    stop_and_join(create([](void*, std::size_t) {
      orrery_message stopped;
      std::memset(&stopped, 0x55, sizeof stopped);
      EXPECT_EQ(orrery_receive(&stopped, ORRERY_FOREVER), ORRERY_STOPPED);
      orrery_release(&stopped);
      // The next one ends the task, with what its destructors release.
      struct released {
        orrery_message m;
        released() { std::memset(&m, 0x55, sizeof m); }
        ~released() { orrery_release(&m); }
      } last;
      (void)orrery_receive(&last.m, ORRERY_FOREVER);
      ADD_FAILURE() << "it goes on";
    }));
  });
}

TEST_P(task, is_not_stopped_by_signals_that_nobody_can_catch) {
  in_world([] {
    for (const int number : {0, -1, SIGKILL, SIGSTOP, 1000})
      EXPECT_EQ(orrery_stop_on_signal(number, orrery_self()), ORRERY_USAGE) << number;
  });
}

TEST_P(task, ends_by_orrery_exit) {
  in_world([] {
    const orrery_task e = create([](void*, std::size_t) { orrery_exit(); });
    EXPECT_EQ(orrery_join(e, ORRERY_FOREVER), ORRERY_OK);
  });
}

TEST_P(task, has_a_name_until_it_ends) {
  in_world([] {
    orrery_task found{};
    EXPECT_EQ(orrery_find("weather", &found, ORRERY_NOW), ORRERY_NAME_NOT_FOUND);
    EXPECT_EQ(orrery_find("weather", &found, 1000), ORRERY_TIMEOUT);
    const orrery_task e = create([](void*, std::size_t) {
      EXPECT_EQ(orrery_set_name(orrery_self(), "weather"), ORRERY_OK);
      echo(nullptr, 0);
    });
    EXPECT_EQ(orrery_find("weather", &found, ORRERY_FOREVER), ORRERY_OK);
    EXPECT_TRUE(orrery_task_same(found, e));
    EXPECT_EQ(orrery_set_name(orrery_self(), "weather"), ORRERY_NAME_TAKEN);
    EXPECT_EQ(orrery_set_name(orrery_self(), ""), ORRERY_USAGE);
    EXPECT_EQ(orrery_stop(e), ORRERY_OK);
    EXPECT_EQ(orrery_join(e, ORRERY_FOREVER), ORRERY_OK);
    EXPECT_EQ(orrery_find("weather", &found, ORRERY_NOW), ORRERY_NAME_NOT_FOUND);
    EXPECT_EQ(orrery_set_name(orrery_self(), "weather"), ORRERY_OK);
    EXPECT_EQ(orrery_remove_name("weather"), ORRERY_OK);
    EXPECT_EQ(orrery_remove_name("weather"), ORRERY_NAME_NOT_FOUND);
  });
}

TEST_P(task, finds_errno_as_it_was) {
  in_world([] {
    const orrery_task e = create([](void*, std::size_t) {
      orrery_message m;
      while (orrery_receive(&m, ORRERY_FOREVER) == ORRERY_OK) {
        errno = EBADF;
        say(m.sender, 1, "x");
        orrery_release(&m);
      }
    });
    errno = ENOENT;
    say(e, 1, "x");
    EXPECT_EQ(take(1), "x");
    EXPECT_EQ(orrery_sleep(1000), ORRERY_OK);
    EXPECT_EQ(orrery_yield(), ORRERY_OK);
    EXPECT_EQ(errno, ENOENT);
  });
}

TEST_P(task, is_told_what_it_did_wrong) {
  in_world([] {
    orrery_task t{};
    EXPECT_EQ(orrery_create(echo, nullptr, 0, orrery_pe(99), &t), ORRERY_NO_PLACE);
    EXPECT_NE(std::string(orrery_error()).find("pe(99)"), std::string::npos);
    EXPECT_EQ(orrery_create(nullptr, nullptr, 0, orrery_here(), &t), ORRERY_USAGE);
    EXPECT_EQ(orrery_create(echo, nullptr, 0, {77, 0}, &t), ORRERY_USAGE);
    EXPECT_EQ(orrery_create(echo, nullptr, 0, orrery_near({}), &t), ORRERY_USAGE);
    EXPECT_EQ(orrery_send_bytes({}, 1, "", 0, ORRERY_WAIT), ORRERY_USAGE);
    EXPECT_EQ(orrery_send_bytes({99, 1, 1}, 1, "", 0, ORRERY_WAIT), ORRERY_NO_PLACE);
    for (int i = ORRERY_OK; i <= ORRERY_FAILED; ++i)
      EXPECT_STRNE(orrery_status_text(static_cast<orrery_status>(i)), "this is no status");
  });
}

TEST_P(task, is_told_that_a_receiver_has_no_room) {
  in_world([] {
    const orrery_task busy = create([](void*, std::size_t) {
      orrery_message m;
      if (orrery_receive_tag(9, &m, ORRERY_FOREVER) == ORRERY_OK) orrery_release(&m);
      while (orrery_receive(&m, ORRERY_NOW) == ORRERY_OK) orrery_release(&m);
    });
    const std::string text(1000, 'x');
    orrery_status said = ORRERY_OK;
    int sent = 0;
    for (; sent < 200'000 && said == ORRERY_OK; ++sent)
      said = orrery_send_bytes(busy, 1, text.data(), text.size(), ORRERY_TRY);
    EXPECT_EQ(said, ORRERY_FULL) << sent;
    EXPECT_STREQ(orrery_error(), "orrery_send_bytes: the receiver has no room now");
    const std::size_t too_much = std::size_t{1} << 40U;
    EXPECT_EQ(orrery_send_bytes(busy, 1, text.data(), too_much, ORRERY_TRY), ORRERY_USAGE);
    EXPECT_TRUE(std::string(orrery_error()).starts_with("orrery_send_bytes: a message of ")) << orrery_error();
    EXPECT_EQ(orrery_stop(busy), ORRERY_OK);
  });
}

TEST(task_outside, of_the_runtime_gets_a_status) {
  orrery_message m;
  orrery_task t{};
  EXPECT_EQ(orrery_receive(&m, ORRERY_NOW), ORRERY_USAGE);
  EXPECT_EQ(orrery_send_bytes({0, 1, 1}, 0, "", 0, ORRERY_WAIT), ORRERY_USAGE);
  EXPECT_EQ(orrery_create(echo, nullptr, 0, orrery_here(), &t), ORRERY_USAGE);
  EXPECT_EQ(orrery_join({0, 1, 1}, 0), ORRERY_USAGE);
  EXPECT_STRNE(orrery_error(), "");
  EXPECT_TRUE(orrery_task_is_null(orrery_self()));
}

TEST(orrery_run_of_c, gives_main_its_arguments_and_returns_its_result) {
  char name[] = "program";
  char pes[] = "--orrery-pes=1";
  char own[] = "own";
  char* argv[] = {name, pes, own, nullptr};
  EXPECT_EQ(orrery_run(3, argv,
                       [](int argc, char** words) {
                         EXPECT_EQ(argc, 2);
                         EXPECT_STREQ(words[1], "own");
                         EXPECT_EQ(words[2], nullptr);
                         EXPECT_EQ(orrery_run(0, nullptr, nullptr), 1);
                         return 7;
                       }),
            7);
  EXPECT_EQ(orrery_run(3, argv, [](int, char**) -> int { orrery_exit(); }), 0);
}

}  // namespace task_tests
