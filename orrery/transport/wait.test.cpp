// SPDX-License-Identifier: Apache-2.0
// Going to sleep and being woken. Tests of lost wake-ups set no time limit: one that is lost is a
// hang, which the watchdog ends.
#include <orrery/transport/internal/test_seed.hpp>
#include <orrery/transport/ring.hpp>
#include <orrery/transport/wait.hpp>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace orrery::transport {
namespace wait_tests {

using orrery::testing::test_seed;

/// A PE that finds nothing to do.
template <class F>
void sleep_unless(doorbell& bell, bool shared, F something_to_do) {
  const std::uint32_t word = bell.futex.load(std::memory_order_relaxed);
  bell.sleeping.store(1, std::memory_order_relaxed);
  fence_heavy();  // SYNC: Dekker with notify and release_space
  if (!something_to_do()) futex_wait(bell.futex, word, -1, shared);
  bell.sleeping.store(0, std::memory_order_relaxed);
}

/// Some time, so that the other side is met at another point each time.
void dawdle(std::minstd_rand& random) {
  if (random() % 64 == 0) std::this_thread::yield();
  for (auto n = random() % 8 == 0 ? random() % 2000 : random() % 20; n > 0; --n) cpu_relax();
}

// --- the futex -----------------------------------------------------------------------------------

TEST(futex, a_wait_for_another_value_returns_at_once) {
  std::atomic<std::uint32_t> word{1};
  futex_wait(word, 0, -1, false);
  futex_wait(word, 0, -1, true);
}

TEST(futex, a_wait_ends_at_its_deadline) {
  std::atomic<std::uint32_t> word{0};
  for (const bool shared : {false, true}) {
    futex_wait(word, 0, 0, shared);  // long ago
    const std::int64_t soon = now_ns() + 2'000'000;
    while (now_ns() < soon) futex_wait(word, 0, soon, shared);
  }
}

TEST(futex, the_clock_does_not_go_backwards) {
  std::int64_t last = now_ns();
  for (int i = 0; i < 1000; ++i) {
    const std::int64_t t = now_ns();
    ASSERT_GE(t, last);
    last = t;
  }
}

// --- the doorbell --------------------------------------------------------------------------------

TEST(doorbell_of_a_pe, that_is_awake_is_not_rung) {
  doorbell bell;
  notify(bell, false);
  ring_doorbell(bell, false);
  EXPECT_EQ(bell.futex.load(), 0U);
}

TEST(doorbell_of_a_pe, that_sleeps_is_rung_once) {
  doorbell bell;
  for (std::uint32_t i = 1; i < 10; ++i) {
    bell.sleeping = 1;
    notify(bell, false);
    notify(bell, false);
    EXPECT_EQ(bell.futex.load(), i);
    EXPECT_EQ(bell.sleeping.load(), 0U);
  }
}

TEST(doorbell_of_a_pe, is_rung_by_one_of_many_who_come_at_once) {
  doorbell bell;
  for (std::uint32_t round = 1; round <= 100; ++round) {
    bell.sleeping = 1;
    {
      std::atomic<int> ready{0};
      std::vector<std::jthread> threads;
      for (int i = 0; i < 3; ++i)
        threads.emplace_back([&] {
          for (++ready; ready < 3;) cpu_relax();
          notify(bell, false);
        });
    }
    ASSERT_EQ(bell.futex.load(), round);
  }
}

// --- no lost wake-up -----------------------------------------------------------------------------

struct manner {
  bool asymmetric;
  bool shared;
};

/// With the kernel's help for fences and without, as PEs of one node and of two.
class wake_up : public ::testing::TestWithParam<manner> {
 protected:
  void SetUp() override {
    if (GetParam().asymmetric) {
      if (!enable_asymmetric_fences()) GTEST_SKIP() << "the kernel has no membarrier";
    } else {
      internal::fences_asymmetric = false;
    }
  }
  void TearDown() override { enable_asymmetric_fences(); }
  static bool shared() { return GetParam().shared; }
};
INSTANTIATE_TEST_SUITE_P(
    by, wake_up, ::testing::Values(manner{true, false}, manner{true, true}, manner{false, false}, manner{false, true}),
    [](const auto& i) {
      return std::string(i.param.asymmetric ? "membarrier" : "full_fences") + (i.param.shared ? "_shared" : "_private");
    });

/// Two who wait for each other in turn.
struct turns {
  doorbell bells[2];
  alignas(64) std::atomic<std::uint32_t> turn{0};

  void play(std::uint32_t side, std::uint32_t rounds, std::uint64_t seed, bool shared) {
    std::minstd_rand random(static_cast<std::uint32_t>(seed + side));
    for (std::uint32_t i = 0; i < rounds; ++i) {
      const std::uint32_t mine = 2 * i + side;
      const auto my_turn = [&] { return turn.load(std::memory_order_acquire) == mine; };
      while (!my_turn()) sleep_unless(bells[side], shared, my_turn);
      dawdle(random);
      turn.store(mine + 1, std::memory_order_release);
      notify(bells[1 - side], shared);
      dawdle(random);
    }
  }
};

TEST_P(wake_up, is_not_lost_between_two_who_take_turns) {
  const std::uint64_t seed = test_seed();
  turns t;
  std::jthread other([&] { t.play(1, 10'000, seed, shared()); });
  t.play(0, 10'000, seed, shared());
  other.join();
  EXPECT_EQ(t.turn.load(), 20'000U);
}

TEST_P(wake_up, is_not_lost_among_many_who_call_one) {
  const std::uint64_t seed = test_seed();
  constexpr std::uint32_t callers = 3;
  constexpr std::uint32_t rounds = 10'000;
  doorbell bell;
  struct alignas(64) count {
    std::atomic<std::uint32_t> n{0};
  } sent[callers];
  std::vector<std::jthread> threads;
  for (std::uint32_t c = 0; c < callers; ++c)
    threads.emplace_back([&, c] {
      std::minstd_rand random(static_cast<std::uint32_t>(seed + c));
      for (std::uint32_t i = 0; i < rounds; ++i) {
        sent[c].n.store(i + 1, std::memory_order_release);
        notify(bell, shared());
        dawdle(random);
      }
    });
  std::uint32_t seen[callers] = {};
  const auto news = [&] {
    for (std::uint32_t c = 0; c < callers; ++c)
      if (sent[c].n.load(std::memory_order_acquire) != seen[c]) return true;
    return false;
  };
  std::uint32_t all = 0;
  while (all < callers * rounds) {
    if (!news()) sleep_unless(bell, shared(), news);
    all = 0;
    for (std::uint32_t c = 0; c < callers; ++c) all += seen[c] = sent[c].n.load(std::memory_order_acquire);
  }
}

/// A stream through a small ring: the consumer sleeps while it is empty, the producer while it is
/// full.
struct stream {
  doorbell bells[2];
  static constexpr std::uint64_t capacity = 256;
  alignas(64) std::byte memory[ring_header::bytes_for(capacity)] = {};
  ring_header* header = make_ring(memory, capacity, 0, 1);

  static std::uint32_t size_of(std::uint32_t number) { return wire::granule * (1 + number % 7 % 2); }

  void produce(std::uint32_t count, std::uint64_t seed, bool shared) {
    std::minstd_rand random(static_cast<std::uint32_t>(seed));
    ring_producer p(*header);
    for (std::uint32_t i = 0; i < count; ++i) {
      wire::envelope* e = nullptr;
      while ((e = p.reserve(size_of(i))) == nullptr) {
        header->producer_waits.store(1, std::memory_order_relaxed);
        sleep_unless(bells[0], shared, [&] { return p.has_moved(); });
        header->producer_waits.store(0, std::memory_order_relaxed);
      }
      e->kind = wire::record_kind::message;
      e->slot = i;
      p.commit(size_of(i));
      notify(bells[1], shared);
      if (random() % 16 < 3) dawdle(random);
    }
  }
  /// The number of records that arrived as they were sent, before the first that did not.
  std::uint32_t consume(std::uint32_t count, std::uint64_t seed, bool shared) {
    std::minstd_rand random(static_cast<std::uint32_t>(seed) + 1);
    ring_consumer c(*header, capacity);
    for (std::uint32_t i = 0; i < count; ++i) {
      wire::envelope* e = nullptr;
      while ((e = c.front()) == nullptr && !c.corrupt()) {
        if (c.has_unreleased()) {
          if (c.release_space()) ring_doorbell(bells[0], shared);
        } else {
          sleep_unless(bells[1], shared, [&] { return c.front() != nullptr || c.corrupt(); });
        }
      }
      if (e == nullptr || e->slot != i || c.front_bytes() != size_of(i)) return i;
      if (c.pop()) ring_doorbell(bells[0], shared);
      if (random() % 16 < 3) dawdle(random);
    }
    if (c.release_space()) ring_doorbell(bells[0], shared);
    return count;
  }
};

TEST_P(wake_up, is_not_lost_by_either_side_of_a_ring) {
  const std::uint64_t seed = test_seed();
  constexpr std::uint32_t count = 50'000;
  auto s = std::make_unique<stream>();
  std::jthread producer([&] { s->produce(count, seed, shared()); });
  const std::uint32_t good = s->consume(count, seed, shared());
  if (good != count) {
    ADD_FAILURE() << "record " << good << " is not what was sent";
    std::abort();  // the producer would wait for ever
  }
}

TEST(wake_up_of_another_node, is_not_lost_between_two_os_processes) {
  const std::uint64_t seed = test_seed();
  constexpr std::uint32_t count = 50'000;
  void* p = mmap(nullptr, sizeof(stream), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(p, MAP_FAILED);
  auto* s = new (p) stream;
  enable_asymmetric_fences();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    enable_asymmetric_fences();
    s->produce(count, seed, true);
    _exit(0);
  }
  const std::uint32_t good = s->consume(count, seed, true);
  if (good != count) kill(child, SIGKILL);
  EXPECT_EQ(good, count);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  munmap(p, sizeof(stream));
}

// A new process does this for the test below. On a machine with nothing else to do some in 100,000
// barriers miss a thread on a core that idled while its process registered, and had run it before.
TEST(heavy_fence, DISABLED_in_a_new_process) {
  const auto on_core = [](int core) {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(core, &cores);
    return sched_setaffinity(0, sizeof cores, &cores) == 0;
  };
  const auto wait_a_little = [](int turns) {  // less than a pause instruction
    for (volatile int k = turns; k > 0;) k = k - 1;
  };
  if (!on_core(0) || !on_core(1)) return;  // these are not to be had
  for (const auto end = now_ns() + 20'000'000; now_ns() < end;) cpu_relax();
  on_core(0);
  for (const auto end = now_ns() + 5'000'000; now_ns() < end;) cpu_relax();
  if (!enable_asymmetric_fences()) return;
  constexpr int rounds = 300'000;  // of which beside other work there is not the time for all
  constexpr int over = -1;
  struct alignas(64) word {
    std::atomic<int> value{0};
  };
  word record, sleeping, begun, done;
  int seen_by_sender = 0;
  std::jthread sender([&] {
    on_core(1);
    for (int i = 1; i <= rounds; ++i) {
      for (int now = 0; (now = begun.value) != i;)
        if (now == over) return;
      wait_a_little(i * 7 % 60);
      record.value.store(i, std::memory_order_relaxed);
      fence_light();
      seen_by_sender = sleeping.value.load(std::memory_order_relaxed);
      done.value = i;
    }
  });
  int missed = 0;
  const std::int64_t end = now_ns() + 2'000'000'000;
  for (int i = 1; i <= rounds && now_ns() < end; ++i) {
    begun.value = i;
    wait_a_little(i * 13 % 60);
    sleeping.value.store(i, std::memory_order_relaxed);
    fence_heavy();
    const int seen = record.value.load(std::memory_order_relaxed);
    while (done.value != i);
    if (seen != i && seen_by_sender != i) ++missed;
  }
  begun.value = over;
  EXPECT_EQ(missed, 0);
}

TEST(heavy_fence, reaches_a_thread_where_its_process_ran_before_it_registered) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    execl("/proc/self/exe", "tests", "--gtest_brief=1", "--gtest_also_run_disabled_tests",
          "--gtest_filter=heavy_fence.DISABLED_*", nullptr);
    _exit(127);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace wait_tests
}  // namespace orrery::transport
