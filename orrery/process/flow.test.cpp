// SPDX-License-Identifier: Apache-2.0
// Queues that are full: who has to wait, who is told, and how much memory is held.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include <orrery/orrery.hpp>
#include <orrery/process/internal/test_world.hpp>
#include <orrery/process/spawn_here.hpp>

namespace orrery {
namespace flow_tests {

using testing::in_world;
using testing::what_is_thrown;

constexpr std::uint32_t mailbox_limit = 16 << 10;
constexpr int flood = testing::slowed_down ? 20'000 : 200'000;

scheduler::node_settings small_mailboxes(std::uint32_t pes) {
  scheduler::node_settings s;
  s.pes = pes;
  s.pe.mailbox_bytes = mailbox_limit;
  s.pe.ring_bytes = 8 << 10;
  return s;
}

/// Holds whoever calls `wait` until somebody calls `open`.
class Gate {
 public:
  static constexpr bool orrery_reentrant = true;
  void wait() {
    while (!open_) yield();
  }
  void open() { open_ = true; }
  ORRERY_PROCESS_MEMBERS(Gate, wait, open)

 private:
  bool open_ = false;
};

class Slow {
 public:
  void wait_at(remote<Gate> gate, remote<function> tell) {
    send(tell, 1);
    gate->wait();
  }
  void take(int n) {
    if (n % 64 == 0) yield();
    ++taken_;
  }
  void take_bytes(std::vector<char> bytes) {
    if (++taken_ % 4 == 0) yield();
    bytes_ += bytes.size();
  }
  int taken() { return taken_; }
  std::size_t bytes() { return bytes_; }
  void flood_itself(bool starting, int n) {
    for (int i = 0; i < n; ++i) {
      if (starting) {
        (void)start(this_process<Slow>())->take(1).valid();
      } else {
        post(this_process<Slow>())->take(1);
      }
    }
  }
  void call_one_that_floods_it(remote<Slow> other, int n) { other->flood_other(this_process<Slow>(), n); }
  void flood_other(remote<Slow> other, int n) {
    for (int i = 0; i < n; ++i) post(other)->take(1);
  }
  void take_one_and_post_another() {
    ++taken_;
    post(this_process<Slow>())->take(1);
  }
  ORRERY_PROCESS_MEMBERS(Slow, flood_other, wait_at, take, take_bytes, taken, bytes, flood_itself,
                         call_one_that_floods_it, take_one_and_post_another)

 private:
  int taken_ = 0;
  std::size_t bytes_ = 0;
};

void flood_with_posts(remote<Slow> to, int count, remote<function> done) {
  for (int i = 0; i < count; ++i) post(to)->take(i);
  send(done, 1);
}
void flood_with_starts(remote<Slow> to, int count, remote<function> done) {
  for (int i = 0; i < count; ++i) (void)start(to)->take(i).valid();
  send(done, 1);
}

TEST(full_mailbox, makes_senders_of_every_pe_wait_and_stays_bounded) {
  const auto counts = in_world(small_mailboxes(3), [] {
    const auto me = this_process<function>();
    const auto slow = spawn<Slow>(pe(1));
    for (const std::uint32_t at : {0U, 1U, 2U}) {
      spawn(pe(at), flood_with_posts, slow, flood, me);
      spawn(pe(at), flood_with_starts, slow, flood / 10, me);
    }
    for (int i = 0; i < 6; ++i) (void)receive<int>();
    quiescence();  // what another PE has sent may still be on its way
    EXPECT_EQ(slow->taken(), 3 * (flood + flood / 10));
  });
  // The limit, and what the rings of the other PEs still held when it was reached.
  EXPECT_LE(counts[1].mailbox_high, mailbox_limit + 2 * (2 * (8U << 10) + 8 * 128));
}

std::size_t resident_bytes() {
  std::ifstream f("/proc/self/statm");
  std::size_t total = 0;
  std::size_t resident = 0;
  f >> total >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

TEST(full_mailbox, counts_what_arguments_own) {
  const std::size_t before = resident_bytes();
  static std::atomic<std::size_t> most;
  most = 0;
  in_world(small_mailboxes(2), [] {
    const auto me = this_process<function>();
    const auto slow = spawn<Slow>(pe(1));
    constexpr int count = 300;
    constexpr std::size_t size = 1 << 20;
    for (const std::uint32_t at : {0U, 1U})
      spawn_here(pe(at), [=] {
        for (int i = 0; i < count; ++i) {
          post(slow)->take_bytes(std::vector<char>(size, 'x'));
          most = std::max(most.load(), resident_bytes());
        }
        send(me, 1);
      });
    for (int i = 0; i < 2; ++i) (void)receive<int>();
    quiescence();
    EXPECT_EQ(slow->bytes(), 2 * count * size);
  });
  EXPECT_LT(most - before, testing::slowed_down ? 500U << 20 : 100U << 20);
}

ORRERY_AT_EACH_PLACE(full);

TEST_P(full, mailbox_of_a_function_makes_senders_wait) {
  testing::in_world(small_mailboxes(2), [] {
    const auto me = this_process<function>();
    const auto f = spawn_here(where(), [me] {
      (void)receive<std::string>();  // not what comes first
      int sum = 0;
      for (int i = 0; i < flood; ++i) sum += receive<int>();
      send(me, sum);
    });
    send(f, std::string("begin"));
    for (int i = 0; i < flood; ++i) send(f, 1);
    EXPECT_EQ(receive<int>(), flood);
  });
}

TEST_P(full, mailbox_is_told_by_try_post_until_there_is_room_again) {
  testing::in_world(small_mailboxes(2), [] {
    const auto slow = spawn<Slow>(where());
    const auto gate = spawn<Gate>(where());
    post(slow)->wait_at(gate, this_process<function>());
    (void)receive<int>();
    int accepted = 0;
    // A full ring refuses too, until the other PE has looked; a full mailbox does so for ever.
    for (int refused = 0; refused < 10'000;) {
      if (try_post(slow)->take(accepted)) {
        ++accepted;
        refused = 0;
      } else {
        ++refused;
        yield();
      }
      ASSERT_LT(accepted, 100'000);
    }
    EXPECT_GT(accepted, 10);
    gate->open();
    while (!try_post(slow)->take(accepted)) yield();
    EXPECT_EQ(slow->taken(), accepted + 1);
  });
}

constexpr int many = testing::slowed_down ? 1'000 : 5'000;  // some twenty mailboxes full

TEST_P(full, mailbox_takes_what_its_process_posts_to_itself) {
  testing::in_world(small_mailboxes(2), [] {
    const auto slow = spawn<Slow>(where());
    slow->flood_itself(false, many);
    slow->flood_itself(true, many);
    EXPECT_EQ(slow->taken(), 2 * many);
  });
}

TEST_P(full, mailbox_takes_what_its_process_posts_while_others_fill_it) {
  testing::in_world(small_mailboxes(2), [] {
    const auto me = this_process<function>();
    const auto slow = spawn<Slow>(where());
    for (int i = 0; i < 4; ++i)
      spawn_here(pe(i % 2), [=] {
        for (int n = 0; n < many; ++n) post(slow)->take_one_and_post_another();
        send(me, 1);
      });
    for (int i = 0; i < 4; ++i) (void)receive<int>();
    quiescence();
    EXPECT_EQ(slow->taken(), 2 * 4 * many);
  });
}

TEST_P(full, mailbox_of_a_process_that_waits_for_the_sender_takes_more) {
  testing::in_world(small_mailboxes(3), [] {
    for (const std::uint32_t at : {0U, 2U}) {
      const auto caller = spawn<Slow>(pe(at));
      caller->call_one_that_floods_it(spawn<Slow>(where()), many);
      EXPECT_EQ(caller->taken(), many);
    }
  });
}

TEST_P(full, mailboxes_of_two_that_flood_each_other_take_all) {
  testing::in_world(small_mailboxes(2), [] {
    const auto one = spawn<Slow>(pe(0));
    const auto other = spawn<Slow>(where());
    for (int round = 1; round <= 3; ++round) {
      auto first = start(one)->flood_other(other, many);
      auto second = start(other)->flood_other(one, many);
      first.get();
      second.get();
      EXPECT_EQ(one->taken(), round * many);
      EXPECT_EQ(other->taken(), round * many);
    }
  });
}

TEST_P(full, mailboxes_of_a_ring_that_floods_itself_take_all) {
  testing::in_world(small_mailboxes(2), [] {
    std::vector<remote<Slow>> ring;
    for (int i = 0; i < 7; ++i) ring.push_back(spawn<Slow>(i % 2 == 0 ? pe(0) : where()));
    std::vector<future<void>> floods;
    for (std::size_t i = 0; i < ring.size(); ++i)
      floods.push_back(start(ring[i])->flood_other(ring[(i + 1) % ring.size()], many));
    for (auto& f : floods) f.get();
    for (const auto& r : ring) EXPECT_EQ(r->taken(), many);
  });
}

TEST_P(full, mailbox_of_a_function_that_waits_for_the_last_message_takes_all) {
  testing::in_world(small_mailboxes(2), [] {
    const auto me = this_process<function>();
    const auto f = spawn_here(where(), [me] {
      (void)receive<std::string>();  // it comes last
      int sum = 0;
      for (int i = 0; i < many; ++i) sum += receive<int>();
      send(me, sum);
    });
    for (int i = 0; i < many; ++i) send(f, 1);
    send(f, std::string("end"));
    EXPECT_EQ(receive<int>(), many);
  });
}

class Meeting : public member<Meeting> {
 public:
  Meeting() = default;
  // The second posts to the first, which waits for it where no probe sees it.
  void meet() {
    if (rank() == 1)
      for (int i = 0; i < many; ++i) post(this_group()[0])->take();
    barrier();
  }
  void take() { ++taken_; }
  int taken() { return taken_; }
  ORRERY_PROCESS_MEMBERS(Meeting, meet, take, taken)

 private:
  int taken_ = 0;
};

TEST_P(full, mailbox_of_a_process_that_waits_in_a_barrier_takes_all) {
  testing::in_world(small_mailboxes(2), [] {
    const auto g = spawn_group<Meeting>({pe(0), where()}, 2);
    g->meet();
    EXPECT_EQ(g[0]->taken(), many);
  });
}

TEST_P(full, mailbox_of_a_process_that_is_destroyed_lets_its_senders_go_on) {
  ::testing::internal::CaptureStderr();
  testing::in_world(small_mailboxes(2), [] {
    const auto me = this_process<function>();
    const auto slow = spawn<Slow>(where());
    const auto gate = spawn<Gate>(where());
    post(slow)->wait_at(gate, me);
    (void)receive<int>();
    auto gone = start_destroy(slow);
    for (const std::uint32_t at : {0U, 1U}) spawn(pe(at), flood_with_posts, slow, 1000, me);
    gate->open();
    gone.get();
    for (int i = 0; i < 2; ++i) (void)receive<int>();
  });
  (void)::testing::internal::GetCapturedStderr();
}

class Patient : public member<Patient> {
 public:
  Patient() = default;
  void meet() {
    if (rank() == 1)
      for (int i = 0; i < 600; ++i) post(this_group()[0])->take();  // two mailboxes full
    barrier();
  }
  void take() { ++taken_; }
  int taken() { return taken_; }
  ORRERY_PROCESS_MEMBERS(Patient, meet, take, taken)

 private:
  int taken_ = 0;
};

TEST_P(full, mailbox_in_a_world_that_is_never_idle_takes_all_in_the_end) {
  testing::in_world(small_mailboxes(2), [] {
    spawn(pe(1), [] { sleep_for(std::chrono::hours(1)); });
    const auto g = spawn_group<Patient>({pe(0), where()}, 2);
    g->meet();
    EXPECT_EQ(g[0]->taken(), 600);
  });
}

// --- all mailboxes of a node ---------------------------------------------------------------------

TEST(queue_memory, is_counted_and_is_0_when_all_is_done) {
  const auto counts = in_world(small_mailboxes(2), [] {
    const auto slow = spawn<Slow>(pe(0));
    slow->flood_itself(false, many);
    quiescence();
    EXPECT_EQ(slow->taken(), many);
  });
  EXPECT_EQ(counts[0].queued_bytes, 0U);
}

TEST(queue_memory, that_is_exceeded_ends_the_program_with_a_report) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto exceed = [] {
    auto s = small_mailboxes(2);
    s.queue_bytes = 4 << 20;
    in_world(s, [] { spawn<Slow>(pe(1))->flood_itself(false, 1'000'000); });
  };
  EXPECT_EXIT(exceed(), ::testing::ExitedWithCode(1),
              "mailboxes of node 0 hold .* KiB.*--orrery-queue-memory.*"
              "messages, .* KiB: orrery::.*Slow::take from PE 1 to orrery::.*Slow");
}

// --- rings ---------------------------------------------------------------------------------------

class Mirror {
 public:
  void send_back(remote<Mirror> to, int n) {
    if (n == 0) {
      if (tell_) send(tell_, 1);
    } else {
      post(to)->send_back(this_process<Mirror>(), n - 1);
    }
  }
  void begin(remote<Mirror> to, int balls, int times, remote<function> tell) {
    tell_ = tell;
    for (int i = 0; i < balls; ++i) post(to)->send_back(this_process<Mirror>(), times);
  }
  ORRERY_PROCESS_MEMBERS(Mirror, send_back, begin)

 private:
  remote<function> tell_;
};

TEST(full_ring, between_two_pes_that_flood_each_other_makes_no_deadlock) {
  in_world(small_mailboxes(2), [] {
    const auto me = this_process<function>();
    constexpr int pairs = 40;
    constexpr int balls = 100;
    for (int i = 0; i < pairs; ++i)
      post(spawn<Mirror>(pe(i % 2)))->begin(spawn<Mirror>(pe((i + 1) % 2)), balls, 21, me);
    for (int i = 0; i < pairs * balls; ++i) (void)receive<int>();
  });
}

TEST(full_ring, carries_floods_of_calls_both_ways) {
  in_world(small_mailboxes(2), [] {
    const auto me = this_process<function>();
    for (const std::uint32_t at : {0U, 1U}) {
      for (int i = 0; i < 100; ++i)
        spawn_here(pe(at), [=] {
          const auto other = spawn<Slow>(pe(1 - at));
          for (int n = 1; n <= 200; ++n) {
            post(other)->take(1);
            if (other->taken() != n) ADD_FAILURE();
          }
          send(me, 1);
        });
    }
    for (int i = 0; i < 200; ++i) (void)receive<int>();
  });
}

}  // namespace flow_tests
}  // namespace orrery
