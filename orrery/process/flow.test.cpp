// SPDX-License-Identifier: Apache-2.0
// Queues that are full: who has to wait, who is told, and how much memory is held.
#include <atomic>
#include <cstdint>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include <orrery/orrery.hpp>
#include <orrery/process/internal/test_world.hpp>

namespace orrery {
namespace {

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
  void flood_itself(bool starting) {
    sent_ = 0;
    for (;; ++sent_) {
      if (starting) {
        (void)start(this_process<Slow>())->take(1).valid();
      } else {
        post(this_process<Slow>())->take(1);
      }
    }
  }
  int sent() { return sent_; }
  void flood_caller(remote<Slow> caller) {
    for (;;) post(caller)->take(1);
  }
  void call_one_that_floods_it(remote<Slow> other) { other->flood_caller(this_process<Slow>()); }
  void flood_other(remote<Slow> other, int n) {
    for (int i = 0; i < n; ++i) post(other)->take(1);
  }
  ORRERY_PROCESS_MEMBERS(Slow, flood_other, wait_at, take, take_bytes, taken, bytes, flood_itself, sent, flood_caller,
                         call_one_that_floods_it)

 private:
  int taken_ = 0;
  int sent_ = 0;
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
      spawn(pe(at), [=] {
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
    const auto f = spawn(where(), [me] {
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

TEST_P(full, mailbox_of_the_sender_itself_is_an_error_and_nothing_is_lost) {
  testing::in_world(small_mailboxes(2), [] {
    const auto slow = spawn<Slow>(where());
    int taken = 0;
    for (const bool starting : {false, true}) {
      EXPECT_THROW(slow->flood_itself(starting), mailbox_full);
      EXPECT_GT(slow->sent(), 10);
      taken += slow->sent();
      EXPECT_EQ(slow->taken(), taken);
    }
  });
}

TEST_P(full, mailbox_of_a_process_that_waits_for_the_sender_is_an_error) {
  testing::in_world(small_mailboxes(2), [] {
    const auto caller = spawn<Slow>(where());
    EXPECT_THROW(caller->call_one_that_floods_it(spawn<Slow>(where())), mailbox_full);
    EXPECT_GT(caller->taken(), 10);
  });
}

TEST_P(full, mailbox_of_a_caller_on_another_pe_is_an_error_and_nothing_hangs) {
  testing::in_world(small_mailboxes(3), [] {
    const auto caller = spawn<Slow>(pe(2));
    const auto what = what_is_thrown<deadlock_error>([&] { caller->call_one_that_floods_it(spawn<Slow>(where())); });
    EXPECT_NE(what.find("Slow::flood_caller"), std::string::npos) << what;
    EXPECT_NE(what.find("full mailbox"), std::string::npos) << what;
    EXPECT_GT(caller->taken(), 10);
  });
}

TEST_P(full, mailboxes_of_two_that_flood_each_other_are_an_error_for_one) {
  testing::in_world(small_mailboxes(2), [] {
    const auto one = spawn<Slow>(pe(0));
    const auto other = spawn<Slow>(where());
    for (int round = 0; round < 20; ++round) {
      auto first = start(one)->flood_other(other, 2000);
      auto second = start(other)->flood_other(one, 2000);
      int errors = 0;
      for (auto* f : {&first, &second}) try {
          f->get();
        } catch (const deadlock_error&) {
          ++errors;
        }
      EXPECT_LE(errors, 1);  // none if one had ended before the other began
      if (where().resolve() == 0) {
        EXPECT_EQ(errors, 1);
      }
    }
    EXPECT_GT(one->taken() + other->taken(), 20 * 2000);
  });
}

TEST_P(full, mailboxes_of_a_ring_that_floods_itself_are_an_error_for_one) {
  testing::in_world(small_mailboxes(2), [] {
    std::vector<remote<Slow>> ring;
    for (int i = 0; i < 7; ++i) ring.push_back(spawn<Slow>(i % 2 == 0 ? pe(0) : where()));
    for (int round = 0; round < 10; ++round) {
      std::vector<future<void>> floods;
      for (std::size_t i = 0; i < ring.size(); ++i)
        floods.push_back(start(ring[i])->flood_other(ring[(i + 1) % ring.size()], 2000));
      int errors = 0;
      for (auto& f : floods) try {
          f.get();
        } catch (const deadlock_error&) {
          ++errors;
        }
      EXPECT_LE(errors, 1);
    }
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

// --- rings -----------------------------------------------------------------------------------------------------------

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
        spawn(pe(at), [=] {
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

}  // namespace
}  // namespace orrery
