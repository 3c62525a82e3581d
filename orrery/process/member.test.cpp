// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/member.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <ranges>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <orrery/orrery.hpp>
#include <orrery/process/internal/test_places.hpp>
#include <orrery/process/internal/test_world.hpp>

namespace orrery {
namespace member_tests {

using testing::in_world;
using testing::random_places;
using testing::what_is_thrown;

// --- peers ---------------------------------------------------------------------------------------

struct Peer;
ORRERY_PROCESS(Peer, hear, heard, sent_by_post, sent_by_call);
struct Peer : member<Peer> {
  static std::uint64_t sent() { return scheduler::current_pe->count().sent; }
  void hear() { ++count; }
  int heard() const { return count; }
  // How many messages this PE sends for one to each peer: each member knows all others itself.
  std::uint64_t sent_by_post() {
    const std::uint64_t before = sent();
    for (std::size_t r = 0; r < size(); ++r)
      if (r != rank()) post(this_group()[r])->hear();
    return sent() - before;
  }
  std::uint64_t sent_by_call() {
    const std::uint64_t before = sent();
    for (std::size_t r = 0; r < size(); ++r)
      if (r != rank()) this_group()[r]->hear();
    return sent() - before;
  }
  int count = 0;
};

TEST(peer, is_reached_by_one_message) {
  in_world(3, [] {
    const auto g = spawn_group<Peer>(everywhere(), 3);
    for (std::size_t r = 0; r < 3; ++r) {
      EXPECT_EQ(g[r]->sent_by_post(), 2U);
      // And the answers are sent by the others. A call that takes long is followed by a probe of
      // the waits, which is counted, too.
      std::uint64_t least = g[r]->sent_by_call();
      for (int more = 0; more < 4; ++more) least = std::min(least, g[r]->sent_by_call());
      EXPECT_EQ(least, 2U);
    }
    quiescence();
    for (const auto p : g) EXPECT_EQ(p->heard(), 2 + 2 * 5);
  });
}

// --- barrier -------------------------------------------------------------------------------------

struct Stepper;
ORRERY_PROCESS(Stepper, step, step_with_sleeps, barrier, meet_and_count, leave_before, reduce_instead, sums, texts,
               fail_in_op, count);

struct Stepper : member<Stepper> {
  using counters = std::vector<std::atomic<int>>;
  inline static std::atomic<counters*> progress = nullptr;

  void check(int round) const {
    for (auto& p : *progress.load()) {
      const int x = p.load(std::memory_order_relaxed);
      if (x < round || x > round + 1) throw std::logic_error("a member is in another round");
    }
  }
  void step(int rounds) {
    for (int i = 0; i < rounds; ++i) {
      (*progress.load())[rank()].store(i + 1, std::memory_order_relaxed);
      barrier();
      check(i + 1);
    }
  }
  void step_with_sleeps(int rounds, unsigned seed) {
    std::mt19937 random(seed + static_cast<unsigned>(rank()));
    for (int i = 0; i < rounds; ++i) {
      if (random() % 8 == 0) sleep_for(std::chrono::microseconds(random() % 100));
      if (random() % 8 == 0) yield();
      (*progress.load())[rank()].store(i + 1, std::memory_order_relaxed);
      barrier();
      check(i + 1);
    }
  }
  int meet_and_count() {
    barrier();
    return ++count_;
  }
  int leave_before(std::size_t leaver) {
    if (rank() == leaver) return 0;
    try {
      barrier();
    } catch (const process_gone&) {
      try {
        barrier();
      } catch (const process_gone&) {
        return 1;
      }
    }
    return 2;
  }
  void reduce_instead(std::size_t who) {
    if (rank() == who) {
      (void)all_reduce(1);
    } else {
      barrier();
    }
  }
  std::vector<long> sums(int rounds) {
    std::vector<long> results;
    for (int i = 0; i < rounds; ++i) results.push_back(all_reduce(static_cast<long>(rank()) * i));
    return results;
  }
  std::string texts() { return all_reduce(std::to_string(rank()) + ","); }
  int fail_in_op() {
    return all_reduce(1, [](int, int) -> int { throw std::domain_error("op"); });
  }
  int count() const { return count_; }

 private:
  int count_ = 0;
};

void step_through(const placements& where, std::size_t n, int rounds) {
  auto g = spawn_group<Stepper>(where, n);
  Stepper::counters progress(n);
  Stepper::progress = &progress;
  g->step(rounds);
  destroy(g);
}

TEST(barrier, nobody_leaves_before_all_have_come_over_10000_rounds_and_random_sizes) {
  in_world(2, [] {
    std::mt19937 random(11);
    for (int done = 0; done < 10'000;) {
      const int rounds = 100 + static_cast<int>(random() % 900);
      step_through(random_places(random), 1 + random() % 70, rounds);
      done += rounds;
    }
  });
}

TEST(barrier, works_on_any_number_of_pes) {
  for (const std::uint32_t pes : {1u, 3u, 4u, 5u, 7u})
    in_world(pes, [] {
      step_through(everywhere(), 3 * world_pes() + 1, 50);
      step_through(in_blocks(), world_pes(), 50);
    });
}

TEST(barrier, members_may_come_late_and_in_any_order) {
  in_world(3, [] {
    std::mt19937 random(13);
    for (int i = 0; i < 10; ++i) {
      const std::size_t n = 1 + random() % 20;
      auto g = spawn_group<Stepper>(random_places(random), n);
      Stepper::counters progress(n);
      Stepper::progress = &progress;
      g->step_with_sleeps(100, static_cast<unsigned>(i));
      destroy(g);
    }
  });
}

TEST(barrier, groups_on_the_same_pes_do_not_disturb_each_other) {
  in_world(2, [] {
    auto a = spawn_group<Stepper>(everywhere(), 5);
    auto b = spawn_group<Stepper>(in_blocks(), 8);
    std::vector<future<std::vector<int>>> running;
    for (int i = 0; i < 200; ++i) {
      running.push_back(start(a)->meet_and_count());
      running.push_back(start(b)->meet_and_count());
    }
    for (std::size_t i = 0; i < running.size(); ++i) {
      const auto counts = running[i].get();
      EXPECT_EQ(counts, std::vector<int>(counts.size(), static_cast<int>(i / 2) + 1));
    }
  });
}

TEST(barrier, is_a_method_like_any_other_so_that_the_creator_can_wait_for_all) {
  in_world(2, [] {
    auto g = spawn_group<Stepper>(everywhere(), 6);
    for (std::size_t i = 0; i < 6; ++i) post(g[i])->meet_and_count();
    g->barrier();
    EXPECT_EQ(g->count(), std::vector<int>(6, 1));
  });
}

TEST(barrier, those_who_wait_for_a_member_that_is_destroyed_hear_that_it_is_gone) {
  in_world(3, [] {
    for (std::size_t leaver = 0; leaver < 7; ++leaver) {
      auto g = spawn_group<Stepper>(everywhere(), 7);
      auto waiting = start(g)->leave_before(leaver);
      destroy(g[leaver]);
      std::vector<int> expected(7, 1);
      expected[leaver] = 0;
      EXPECT_EQ(waiting.get(), expected);
      destroy(g);
    }
  });
}

TEST(barrier, a_destroyed_group_finishes_the_barriers_that_were_called_before) {
  in_world(3, [] {
    for (int i = 0; i < 50; ++i) {
      auto g = spawn_group<Stepper>(everywhere(), 9);
      std::vector<future<std::vector<int>>> running;
      for (int k = 0; k < 10; ++k) running.push_back(start(g)->meet_and_count());
      auto gone = start_destroy(g);
      for (int k = 0; k < 10; ++k) EXPECT_EQ(running[static_cast<std::size_t>(k)].get(), std::vector<int>(9, k + 1));
      gone.get();
    }
  });
}

TEST(barrier, members_that_call_different_collectives_hear_of_it) {
  in_world(1, [] {
    auto g = spawn_group<Stepper>(everywhere(), 4);
    auto f = start(g)->reduce_instead(2);
    sleep_for(std::chrono::milliseconds(5));
    destroy(g[2]);  // after its call failed; the others wait for it
    EXPECT_THROW(f.get(), error);
    destroy(g);
  });
}

TEST(barrier, members_that_wait_when_the_runtime_ends_do_not_keep_it) {
  in_world(2, [] {
    auto g = spawn_group<Stepper>(everywhere(), 4);
    post(g[0])->barrier();
    post(g[1])->barrier();
    sleep_for(std::chrono::milliseconds(1));
  });
}

// --- all_reduce ----------------------------------------------------------------------------------

TEST(all_reduce, gives_the_same_result_to_all) {
  in_world(3, [] {
    std::mt19937 random(17);
    for (int i = 0; i < 20; ++i) {
      const std::size_t n = 1 + random() % 30;
      auto g = spawn_group<Stepper>(random_places(random), n);
      std::vector<long> expected;
      for (int k = 0; k < 50; ++k) expected.push_back(static_cast<long>(n * (n - 1) / 2) * k);
      for (const auto& s : g->sums(50)) EXPECT_EQ(s, expected);
      destroy(g);
    }
  });
}

TEST(all_reduce, keeps_the_order_of_the_ranks) {
  in_world(3, [] {
    for (const auto& where : {everywhere(), in_blocks()}) {
      auto g = spawn_group<Stepper>(where, 8);
      EXPECT_EQ(g->texts(), std::vector<std::string>(8, "0,1,2,3,4,5,6,7,"));
    }
  });
}

TEST(all_reduce, all_hear_of_an_operation_that_throws) {
  in_world(2, [] {
    auto g = spawn_group<Stepper>(everywhere(), 6);
    for (int i = 0; i < 3; ++i) EXPECT_THROW(g->fail_in_op(), std::domain_error);
    EXPECT_EQ(g->texts()[0], "0,1,2,3,4,5,");
  });
}

// --- members that take messages while they wait --------------------------------------------------

struct Open;
ORRERY_PROCESS(Open, meet);
struct Open : member<Open> {
  static constexpr bool orrery_reentrant = true;
  static inline std::atomic<int> ended = 0;
  ~Open() { ++ended; }
  void meet() { barrier(); }
};

TEST(reentrant_members, that_wait_hear_that_the_group_was_destroyed) {
  Open::ended = 0;
  in_world(2, [] {
    const auto g = spawn_group<Open>(everywhere(), 2);
    auto f = start(g[0])->meet();
    yield();
    destroy(g);
    EXPECT_THROW(f.get(), process_gone);
    while (Open::ended != 2) yield();
  });
}

}  // namespace member_tests
}  // namespace orrery
