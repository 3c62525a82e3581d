// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/shm/arena.hpp>
#include <orrery/transport/shm/internal/test_support.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <functional>
#include <future>
#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <rapidcheck/gtest.h>
#include <sys/stat.h>

namespace orrery::transport {
namespace arena_tests {

using testing::expect_error;
using testing::link;
using testing::other;
using testing::take;

constexpr std::uint64_t kib = 1 << 10;
constexpr std::uint64_t mib = 1 << 20;

struct arena_of {
  explicit arena_of(std::uint64_t limit)
      : memory(take(segment::create("test", arena::segment_bytes(limit)))), blocks(memory, limit, 4 * kib) {}
  [[nodiscard]] std::uint64_t memory_used() const {
    struct stat info{};
    ::fstat(memory.fd(), &info);
    return static_cast<std::uint64_t>(info.st_blocks) * 512;
  }
  segment memory;
  arena blocks;
};

class arena_test : public testing::shm_test {};

TEST_F(arena_test, gives_out_fresh_memory_that_is_zero) {
  arena_of a{64 * mib};
  const auto b = take(a.blocks.allocate(100 * kib));
  EXPECT_TRUE(b.zeroed);
  EXPECT_EQ(b.bytes, 100 * kib);
  EXPECT_NE(b.offset, 0U);
  const std::byte* p = a.blocks.data() + b.offset;
  EXPECT_TRUE(std::all_of(p, p + b.bytes, [](std::byte x) { return x == std::byte{0}; }));
  EXPECT_TRUE(a.blocks.consistent());
}

TEST_F(arena_test, reuses_the_block_that_came_back_last) {
  arena_of a{64 * mib};
  const auto first = take(a.blocks.allocate(mib));
  const auto second = take(a.blocks.allocate(mib));
  EXPECT_TRUE(a.blocks.release(first.offset));
  EXPECT_TRUE(a.blocks.release(second.offset));
  const auto again = take(a.blocks.allocate(mib - 5));
  EXPECT_EQ(again.offset, second.offset);
  EXPECT_FALSE(again.zeroed);
  EXPECT_EQ(take(a.blocks.allocate(mib)).offset, first.offset);
}

TEST_F(arena_test, takes_memory_only_for_what_was_asked_for) {
  arena_of a{64 * mib};
  const auto b = take(a.blocks.allocate(33 * mib));
  EXPECT_EQ(b.bytes, 33 * mib);
  EXPECT_EQ(a.memory_used(), 33 * mib);
  EXPECT_EQ(a.blocks.stats().in_use, 33 * mib);
  EXPECT_TRUE(a.blocks.release(b.offset));
  const auto larger = take(a.blocks.allocate(40 * mib));
  EXPECT_EQ(larger.offset, b.offset);
  EXPECT_EQ(a.memory_used(), 40 * mib);
  EXPECT_TRUE(a.blocks.consistent());
}

TEST_F(arena_test, gives_blocks_beyond_its_limit_which_take_nothing_of_it) {
  arena_of a{mib};
  const auto all = take(a.blocks.allocate(mib));
  expect_error(a.blocks.allocate(4 * kib), transport_errc::no_space, {});
  const auto ring = take(a.blocks.allocate_beyond(33 * kib));
  expect_error(a.blocks.allocate(4 * kib), transport_errc::no_space, {});
  EXPECT_TRUE(a.blocks.consistent());
  EXPECT_TRUE(a.blocks.release(all.offset));
  EXPECT_TRUE(a.blocks.consistent());
  EXPECT_TRUE(a.blocks.release(ring.offset));
  EXPECT_TRUE(a.blocks.consistent());
  const auto again = take(a.blocks.allocate(mib));
  expect_error(a.blocks.allocate(4 * kib), transport_errc::no_space, {});
  EXPECT_TRUE(a.blocks.release(again.offset));
  EXPECT_TRUE(a.blocks.consistent());
}

TEST_F(arena_test, cuts_small_blocks_from_one_piece) {
  arena_of a{64 * mib};
  for (int i = 0; i < 16; ++i) (void)take(a.blocks.allocate(4 * kib));
  EXPECT_EQ(a.memory_used(), 64 * kib);
  EXPECT_TRUE(a.blocks.consistent());
}

TEST_F(arena_test, refuses_offsets_at_which_no_block_begins) {
  arena_of a{64 * mib};
  const auto b = take(a.blocks.allocate(64 * kib));
  for (const std::uint64_t offset : {std::uint64_t{0}, b.offset + 4 * kib, b.offset + 1, a.memory.size(),
                                     a.memory.size() + 4 * kib, ~std::uint64_t{0}}) {
    EXPECT_FALSE(a.blocks.release(offset));
    EXPECT_EQ(a.blocks.block_bytes(offset), 0U);
  }
  EXPECT_EQ(a.blocks.block_bytes(b.offset), 64 * kib);
  EXPECT_TRUE(a.blocks.release(b.offset));
  EXPECT_FALSE(a.blocks.release(b.offset)) << "it was released twice";
  EXPECT_TRUE(a.blocks.consistent());
}

TEST_F(arena_test, stops_at_its_limit_and_goes_on_when_blocks_come_back) {
  arena_of a{8 * mib};
  const auto b = take(a.blocks.allocate(6 * mib));
  expect_error(a.blocks.allocate(3 * mib), transport_errc::no_space, {"3145728", "6291456", "8388608"});
  EXPECT_TRUE(a.blocks.release(b.offset));
  (void)take(a.blocks.allocate(3 * mib));
  EXPECT_TRUE(a.blocks.consistent());
}

TEST_F(arena_test, uses_idle_memory_of_one_size_for_another) {
  arena_of a{8 * mib};
  std::vector<arena::block> small;
  for (std::uint64_t i = 0; i < 8 * mib / (4 * kib); ++i) small.push_back(take(a.blocks.allocate(4 * kib)));
  EXPECT_FALSE(a.blocks.allocate(1));
  for (const auto& b : small) EXPECT_TRUE(a.blocks.release(b.offset));
  EXPECT_EQ(take(a.blocks.allocate(8 * mib)).bytes, 8 * mib);
  EXPECT_EQ(a.memory_used(), 8 * mib);
  EXPECT_TRUE(a.blocks.consistent());
}

TEST_F(arena_test, gives_idle_memory_back_on_request) {
  arena_of a{64 * mib};
  const auto kept = take(a.blocks.allocate(mib));
  const auto b = take(a.blocks.allocate(16 * mib));
  EXPECT_TRUE(a.blocks.release(b.offset));
  EXPECT_EQ(a.blocks.stats().idle, 16 * mib);
  a.blocks.trim();
  EXPECT_EQ(a.blocks.stats().idle, 0U);
  EXPECT_EQ(a.memory_used(), mib);
  EXPECT_TRUE(take(a.blocks.allocate(16 * mib)).zeroed);
  EXPECT_TRUE(a.blocks.release(kept.offset));
  EXPECT_TRUE(a.blocks.consistent());
}

TEST_F(arena_test, has_a_largest_block_which_is_its_limit) {
  arena_of a{64 * mib + 12 * kib};
  EXPECT_EQ(take(a.blocks.allocate(5)).bytes, 4 * kib);
  expect_error(a.blocks.allocate(64 * mib + 12 * kib + 1), transport_errc::bad_argument,
               {"67121153", "67121152", "--orrery-memory", "in parts"});
  expect_error(a.blocks.allocate(~std::uint64_t{0}), transport_errc::bad_argument, {"in parts"});
}

TEST_F(arena_test, has_room_for_one_block_of_all_its_memory) {
  constexpr std::uint64_t gib = std::uint64_t{1} << 30;
  for (const std::uint64_t limit : {gib / 2, gib, gib + 1, 3 * gib, 100 * gib}) {
    const std::uint64_t place = std::bit_ceil(limit);
    const std::uint64_t bytes = arena::segment_bytes(limit);
    EXPECT_GE(bytes, place + std::max(place, 2 * limit))
        << limit;  // the place behind what is reserved, and as much again
  }
  arena_of a{2 * mib};
  EXPECT_EQ(take(a.blocks.allocate(2 * mib)).bytes, 2 * mib);
}

TEST_F(arena_test, stays_whole_when_the_system_has_no_memory) {
  other child{[](link& l) {
    arena_of a{64 * mib};
    const auto used = take(a.blocks.allocate(mib));
    const auto idle = take(a.blocks.allocate(3 * mib));
    (void)a.blocks.release(idle.offset);
    testing::fail_system_call(SYS_fallocate, ENOSPC);
    const auto fresh = a.blocks.allocate(8 * mib);
    const auto more = a.blocks.allocate(4 * mib);  // of the place that has 3 MiB
    const auto small = a.blocks.allocate(5);
    const auto again = a.blocks.allocate(3 * mib);
    const bool good = !fresh && fresh.error().code == transport_errc::no_space && !more && !small && again &&
                      again->offset == idle.offset && a.blocks.consistent() && a.blocks.release(used.offset);
    l.say(good ? "good" : "wrong");
    return 0;
  }};
  EXPECT_EQ(child.hear(), "good");
}

TEST_F(arena_test, serves_many_threads) {
  arena_of a{256 * mib};
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::vector<arena::block> mine;
      unsigned random = 12345U + static_cast<unsigned>(t);
      const auto tag = static_cast<std::byte>(t + 1);
      for (int i = 0; i < 4000; ++i) {
        random = random * 1664525 + 1013904223;
        if (mine.size() < 20 && random % 3 != 0) {
          auto b = a.blocks.allocate(random % (256 * kib) + 1);
          if (!b) continue;
          a.blocks.data()[b->offset] = tag;
          a.blocks.data()[b->offset + b->bytes - 1] = tag;
          mine.push_back(*b);
        } else if (!mine.empty()) {
          const auto b = mine[random % mine.size()];
          std::erase_if(mine, [&](const auto& m) { return m.offset == b.offset; });
          if (a.blocks.data()[b.offset] != tag || a.blocks.data()[b.offset + b.bytes - 1] != tag) ++wrong;
          if (!a.blocks.release(b.offset)) ++wrong;
        }
      }
      for (const auto& b : mine)
        if (!a.blocks.release(b.offset)) ++wrong;
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(a.blocks.stats().in_use, 0U);
  EXPECT_TRUE(a.blocks.consistent());
}

/// A thread whose work is held in its first call of the system for memory.
struct held_thread {
  explicit held_thread(std::function<void()> work)
      : thread_([this, work = std::move(work)] {
          const bool holds = call.hold(SYS_fallocate);
          can_.set_value(holds);
          if (holds) work();
          done_ = true;
        }) {}
  /// False if this system cannot hold it.
  [[nodiscard]] bool begins() {
    const bool holds = can_.get_future().get();
    if (holds) call.wait_for_call();
    return holds;
  }
  void end() {
    while (!done_) call.let_one_go_on();
    thread_.join();
  }
  ~held_thread() { call.let_go(); }  // also where the test fails before

  testing::held_system_call call;

 private:
  std::promise<bool> can_;
  std::atomic<bool> done_{false};
  std::jthread thread_;
};

TEST_F(arena_test, serves_others_while_the_system_makes_memory_for_one) {
  for (const int error : {0, ENOSPC}) {
    arena_of a{512 * mib};
    const auto idle = take(a.blocks.allocate(8 * mib));
    const auto used = take(a.blocks.allocate(16 * mib));
    EXPECT_TRUE(a.blocks.release(idle.offset));
    std::optional<result<arena::block>> made;
    held_thread t{[&] { made.emplace(a.blocks.allocate(128 * mib)); }};
    if (!t.begins()) {
      t.end();
      GTEST_SKIP() << "this system lets nobody hold calls";
    }
    EXPECT_TRUE(a.blocks.consistent());
    EXPECT_EQ(a.blocks.stats().in_use, 16 * mib);
    EXPECT_EQ(take(a.blocks.allocate(8 * mib)).offset, idle.offset);
    const auto more = take(a.blocks.allocate_beyond(32 * mib));
    expect_error(a.blocks.allocate(384 * mib), transport_errc::no_space, {});  // it is reserved
    EXPECT_TRUE(a.blocks.consistent());
    t.call.go_on(error);
    t.end();
    ASSERT_TRUE(made);
    if (error == 0) {
      const auto b = take(std::move(*made));
      EXPECT_TRUE(b.zeroed);
      EXPECT_NE(b.offset, more.offset);
      EXPECT_EQ(a.blocks.stats().in_use, 184 * mib);
    } else {
      expect_error(*made, transport_errc::no_space, {});
      EXPECT_EQ(a.blocks.stats().in_use, 56 * mib);
      EXPECT_EQ(take(a.blocks.allocate(384 * mib)).bytes, 384 * mib);
    }
    EXPECT_TRUE(a.blocks.release(used.offset));
    EXPECT_TRUE(a.blocks.consistent());
  }
}

TEST_F(arena_test, serves_others_while_the_system_takes_memory_back) {
  arena_of a{256 * mib};
  const auto idle = take(a.blocks.allocate(128 * mib));
  EXPECT_TRUE(a.blocks.release(idle.offset));
  held_thread t{[&] { a.blocks.trim(); }};
  if (!t.begins()) {
    t.end();
    GTEST_SKIP() << "this system lets nobody hold calls";
  }
  EXPECT_TRUE(a.blocks.consistent());
  EXPECT_FALSE(a.blocks.release(idle.offset));
  const auto other_block = take(a.blocks.allocate(64 * mib));
  EXPECT_NE(other_block.offset, idle.offset);
  (void)take(a.blocks.allocate_beyond(32 * mib));
  // There is room for it when that memory has gone, whether it waits for that or comes later.
  std::optional<result<arena::block>> last;
  std::jthread waits{[&] { last.emplace(a.blocks.allocate(128 * mib)); }};
  t.call.go_on();
  t.end();
  waits.join();
  ASSERT_TRUE(last);
  EXPECT_TRUE(*last);
  EXPECT_EQ(a.blocks.stats().in_use, 224 * mib);
  EXPECT_TRUE(a.blocks.consistent());
}

RC_GTEST_PROP(arena_property, blocks_never_overlap_and_the_limit_holds, ()) {
  const std::uint64_t limit = *rc::gen::element(mib, 16 * mib, 100 * mib);
  arena_of a{limit};
  std::map<std::uint64_t, std::uint64_t> blocks;  // offset -> bytes
  const auto steps = *rc::gen::container<std::vector<std::uint32_t>>(rc::gen::arbitrary<std::uint32_t>());
  for (const std::uint32_t step : steps) {
    const std::uint32_t size = step >> 8;
    if (step % 16 == 0) {
      a.blocks.trim(size % limit);
    } else if (step % 2 == 0 && !blocks.empty()) {
      auto victim = blocks.lower_bound(size);
      if (victim == blocks.end()) victim = blocks.begin();
      RC_ASSERT(a.blocks.release(victim->first));
      blocks.erase(victim);
    } else {
      const auto b = a.blocks.allocate(size >> (step % 24));
      if (!b) continue;
      RC_ASSERT(b->offset >= 4 * kib);
      RC_ASSERT(b->offset + b->bytes <= a.memory.size());
      const auto next = blocks.lower_bound(b->offset);
      if (next != blocks.end()) RC_ASSERT(next->first >= b->offset + b->bytes);
      if (next != blocks.begin()) {
        const auto before = std::prev(next);
        RC_ASSERT(before->first + before->second <= b->offset);
      }
      blocks.emplace(b->offset, b->bytes);
    }
    const auto s = a.blocks.stats();
    RC_ASSERT(s.in_use + s.idle <= limit);
    RC_ASSERT(s.in_use + s.idle == a.memory_used());
  }
  RC_ASSERT(a.blocks.consistent());
  for (const auto& [offset, bytes] : blocks) RC_ASSERT(a.blocks.release(offset));
  a.blocks.trim();
  RC_ASSERT(a.memory_used() == 0U);
  RC_ASSERT(a.blocks.consistent());
}

}  // namespace arena_tests
}  // namespace orrery::transport
