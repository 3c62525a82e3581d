// SPDX-License-Identifier: Apache-2.0
// What becomes of everything that is under way when the main function returns.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <orrery/orrery.hpp>
#include <orrery/process/internal/test_world.hpp>
#include <orrery/process/spawn_here.hpp>

namespace orrery {
namespace shutdown_tests {

using testing::in_world;
using namespace std::chrono_literals;

std::atomic<int> alive{0};

/// Something whose destructor must run.
struct token {
  token() { ++alive; }
  token(const token&) { ++alive; }
  token(token&&) noexcept { ++alive; }
  token& operator=(const token&) = default;
  token& operator=(token&&) = default;
  ~token() { --alive; }
  template <class A>
  void serialize(A&) {}
};

class Holder {
 public:
  void keep(token) {}
  void sleep(remote<function> tell) {
    const token mine;
    send(tell, 1);
    sleep_for(1h);
  }
  int wait_for(remote<Holder> other, remote<function> tell) {
    const token mine;
    return other->wait_long(mine, tell);
  }
  int wait_long(const token& argument, remote<function> tell) {
    const token mine(argument);
    send(tell, 1);
    sleep_for(1h);
    return 1;
  }
  void wait_for_future(remote<Holder> other, remote<function> tell) {
    const token mine;
    auto f = start(other)->wait_long(token{}, tell);
    (void)f.get();
  }
  void wait_with_limit(remote<Holder> other, remote<function> tell) {
    const token mine;
    auto f = start(other)->wait_long(token{}, tell);
    while (!f.wait_for(1h)) {
    }
  }
  void flood(remote<Holder> other, remote<function> tell) {
    const token mine;
    send(tell, 1);
    for (;;) post(other)->keep(token{});
  }
  void play(remote<Holder> other) { post(other)->play(this_process<Holder>()); }
  ORRERY_PROCESS_MEMBERS(Holder, keep, sleep, wait_for, wait_long, wait_for_future, wait_with_limit, flood, play)

 private:
  token own_;
};

void receive_ones(int count) {
  for (int i = 0; i < count; ++i) EXPECT_EQ(receive<int>(), 1);
}

class shutdown : public ::testing::Test {
 protected:
  void SetUp() override { alive = 0; }
  void TearDown() override { EXPECT_EQ(alive, 0) << "destructors that did not run"; }
};

TEST_F(shutdown, runs_the_destructors_of_idle_processes) {
  in_world(2, [] {
    for (int i = 0; i < 100; ++i) spawn<Holder>(pe(i % 2));
    EXPECT_EQ(alive, 100);
  });
}

TEST_F(shutdown, unwinds_functions_that_wait_in_receive) {
  in_world(2, [] {
    const auto me = this_process<function>();
    for (int i = 0; i < 10; ++i)
      spawn(
          pe(i % 2),
          [](remote<function> tell) {
            const token mine;
            send(tell, 1);
            (void)receive<std::string>();
          },
          me);
    receive_ones(10);
  });
}

TEST_F(shutdown, unwinds_functions_that_wait_in_receive_with_a_time_limit) {
  in_world(2, [] {
    const auto me = this_process<function>();
    spawn(
        pe(1),
        [](remote<function> tell) {
          const token mine;
          send(tell, 1);
          for (;;) (void)receive_for<std::string>(1h);
        },
        me);
    receive_ones(1);
  });
}

TEST_F(shutdown, unwinds_methods_that_sleep) {
  in_world(2, [] {
    const auto me = this_process<function>();
    for (int i = 0; i < 2; ++i) post(spawn<Holder>(pe(i)))->sleep(me);
    receive_ones(2);
  });
}

TEST_F(shutdown, unwinds_callees_before_their_callers_on_other_pes) {
  in_world(3, [] {
    const auto me = this_process<function>();
    for (unsigned i = 0; i < 3; ++i) post(spawn<Holder>(pe(i)))->wait_for(spawn<Holder>(pe((i + 1) % 3)), me);
    receive_ones(3);
  });
}

TEST_F(shutdown, unwinds_methods_that_wait_for_a_future) {
  in_world(2, [] {
    const auto me = this_process<function>();
    for (unsigned i = 0; i < 2; ++i) {
      post(spawn<Holder>(pe(i)))->wait_for_future(spawn<Holder>(pe(1)), me);
      post(spawn<Holder>(pe(i)))->wait_with_limit(spawn<Holder>(pe(1)), me);
    }
    receive_ones(4);
  });
}

TEST_F(shutdown, unwinds_senders_that_wait_for_room) {
  in_world(2, [] {
    const auto me = this_process<function>();
    const auto slow = spawn<Holder>(pe(1));
    post(slow)->sleep(me);
    receive_ones(1);
    post(spawn<Holder>(pe(0)))->flood(slow, me);
    post(spawn<Holder>(pe(1)))->flood(slow, me);
    receive_ones(2);
  });
}

TEST_F(shutdown, destroys_the_arguments_of_messages_that_are_not_executed) {
  in_world(2, [] {
    const auto me = this_process<function>();
    for (unsigned i = 0; i < 2; ++i) {
      const auto slow = spawn<Holder>(pe(i));
      post(slow)->sleep(me);
      receive_ones(1);
      for (int n = 0; n < 50; ++n) post(slow)->keep(token{});
      auto dropped = start(slow)->keep(token{});
    }
  });
}

TEST_F(shutdown, destroys_messages_that_a_function_did_not_receive) {
  in_world(2, [] {
    const auto me = this_process<function>();
    for (unsigned i = 0; i < 2; ++i) {
      const auto f = spawn(
          pe(i),
          [](remote<function> tell) {
            send(tell, 1);
            (void)receive<int>();
          },
          me);
      for (int n = 0; n < 10; ++n) send(f, token{});
    }
    receive_ones(2);
  });
}

TEST_F(shutdown, resumes_what_was_to_happen_after_a_call) {
  bool told = false;
  in_world(2, [&] {
    auto after = start(spawn<Holder>(pe(1)))->wait_long(token{}, this_process<function>()).then([t = token{}](int) {
      return 1;
    });
    receive_ones(1);
    spawn_here([f = std::move(after), &told]() mutable {
      try {
        (void)f.get();
      } catch (const stopped&) {
        told = true;
      }
    });
    yield();
  });
  EXPECT_TRUE(told);
}

TEST_F(shutdown, ends_processes_that_send_to_each_other_for_ever) {
  in_world(2, [] {
    const auto a = spawn<Holder>(pe(0));
    const auto b = spawn<Holder>(pe(0));
    const auto c = spawn<Holder>(pe(1));
    post(a)->play(b);
    post(a)->play(c);
  });
}

struct Counter {
  inline static int executed = 0;
  void count() { ++executed; }
};
ORRERY_PROCESS(Counter, count);

TEST_F(shutdown, executes_what_was_posted_before_on_the_same_pe) {
  Counter::executed = 0;
  in_world(1, [] {
    const auto c = spawn<Counter>(here());
    for (int i = 0; i < 100; ++i) post(c)->count();
  });
  EXPECT_EQ(Counter::executed, 100);
}

/// Calls another process while it is destroyed.
class Client {
 public:
  Client() = default;
  Client(remote<Client> server, int n) : server_(server), n_(n) {}
  ~Client() {
    try {
      if (server_) server_->note(n_);
    } catch (const error&) {
      ++failed;
    }
    if (log != nullptr) log->push_back(n_);
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  void note(int n) { noted += n; }
  ORRERY_PROCESS_MEMBERS(Client, note)

  inline static std::vector<int>* log = nullptr;
  inline static std::atomic<int> noted{0};
  inline static std::atomic<int> failed{0};

 private:
  remote<Client> server_;
  int n_ = 0;
};

class Failing {
 public:
  void fail(int n) { throw std::runtime_error("failed " + std::to_string(n)); }
  ORRERY_PROCESS_MEMBERS(Failing, fail)
};

TEST_F(shutdown, reports_what_methods_throw_that_run_when_main_has_returned) {
  ::testing::internal::CaptureStderr();
  const auto counts = in_world(2, [] {
    for (const std::uint32_t at : {0U, 1U}) {
      const auto f = spawn<Failing>(pe(at));
      for (int i = 0; i < 3; ++i) post(f)->fail(10 * static_cast<int>(at) + i);
    }
  });
  const std::string report = ::testing::internal::GetCapturedStderr();
  for (const int n : {0, 1, 2, 10, 11, 12})
    EXPECT_NE(report.find("failed " + std::to_string(n) + "\n"), std::string::npos) << n << ": " << report;
  EXPECT_EQ(counts[0].failed_posts + counts[1].failed_posts, 6U);
}

TEST_F(shutdown, is_no_failure_of_what_it_cuts_short_but_posts_are_counted) {
  ::testing::internal::CaptureStderr();
  const auto counts = in_world(2, [] {
    const auto me = this_process<function>();
    for (const std::uint32_t at : {0U, 1U}) {
      const auto h = spawn<Holder>(pe(at));
      post(h)->sleep(me);
      (void)receive<int>();
      post(h)->keep(token());
      (void)start(h)->keep(token());
    }
  });
  const std::string said = ::testing::internal::GetCapturedStderr();
  for (const int at : {0, 1})
    EXPECT_NE(
        said.find("orrery: PE " + std::to_string(at) + ": 1 one-way message was not executed when the program ended: "),
        std::string::npos)
        << said;
  EXPECT_NE(said.find("orrery: PE 0: 2 calls whose futures were dropped had no answer when the program ended: "),
            std::string::npos)
      << said;
  EXPECT_EQ(std::ranges::count(said, '\n'), 3) << said;
  EXPECT_EQ(counts[0].failed_posts + counts[1].failed_posts, 0U);
}

TEST_F(shutdown, comes_to_pes_that_others_wake) {
  constexpr std::uint32_t pes = 300;  // more than are woken by who stops the node
  in_world(pes, [] {
    const auto me = this_process<function>();
    for (const std::uint32_t at : {0U, 255U, 256U, pes - 1}) {
      post(spawn<Holder>(pe(at)))->sleep(me);
      (void)receive<int>();
    }
    EXPECT_EQ(alive, 8);  // of four objects and four parked methods
  });
}

TEST_F(shutdown, destroys_the_latest_first_as_its_destructor_may_call_older_ones) {
  Client::noted = Client::failed = 0;
  std::vector<int> log;
  in_world(1, [&] {
    const auto server = spawn<Client>(here());
    Client::log = &log;
    for (int i = 1; i <= 3; ++i) spawn<Client>(here(), server, i);
  });
  Client::log = nullptr;
  EXPECT_EQ(Client::noted, 6);
  EXPECT_EQ(log, (std::vector{3, 2, 1, 0}));
}

TEST_F(shutdown, answers_destructors_that_call_processes_of_other_pes) {
  Client::noted = Client::failed = 0;
  in_world(3, [&] {
    for (unsigned i = 0; i < 30; ++i) {
      const auto server = spawn<Client>(pe(i % 3));
      spawn(
          pe((i + 1) % 3),
          [](remote<Client> s, remote<function> tell) {
            spawn<Client>(here(), s, 1);
            send(tell, 1);
          },
          server, this_process<function>());
    }
    receive_ones(30);
  });
  EXPECT_EQ(Client::noted + Client::failed, 30);
}

TEST_F(shutdown, abandons_a_method_that_goes_on_for_ever) {
#ifdef ORRERY_ASAN
  GTEST_SKIP() << "what is abandoned is leaked";
#endif
  ::testing::internal::CaptureStderr();
  in_world(2, [] {
    for (unsigned i = 0; i < 2; ++i)
      spawn(
          pe(i),
          [](remote<function> tell) {
            send(tell, 1);
            for (;;) {
              try {
                yield();
              } catch (const stopped&) {  // never gives up
              }
            }
          },
          this_process<function>());
    receive_ones(2);
  });
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find(": 1 parked process did not end when the program did; it was abandoned"), std::string::npos)
      << said;
}

}  // namespace shutdown_tests
}  // namespace orrery
