// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/idle_queue.hpp>

#include <orrery/transport/internal/test_seed.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstddef>
#include <deque>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace orrery::scheduler {
namespace idle_queue_tests {

struct numbered final : idle_task {
  explicit numbered(int n, int* left = nullptr) : number(n), alive(left) {}
  numbered(const numbered&) = delete;
  numbered& operator=(const numbered&) = delete;
  ~numbered() override {
    if (alive != nullptr) --*alive;
  }
  void run() override {}
  int number;
  int* alive;
};

int pop_number(idle_queue& q) { return static_cast<numbered&>(*q.pop()).number; }

TEST(idle_queue, a_new_one_is_empty) {
  const idle_queue q;
  EXPECT_TRUE(q.empty());
  EXPECT_FALSE(q.wants_memory());
}

// Fetching is a matter of speed only, but it follows the tasks with a pointer of its own.
// AddressSanitizer sees what that points to.
TEST(idle_queue, keeps_the_order_whatever_is_fetched_meanwhile) {
  const std::uint64_t seed = testing::test_seed();
  SCOPED_TRACE("ORRERY_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  idle_queue q;
  std::deque<int> expected;
  slot process{};
  for (int n = 0; n < 100'000; ++n) {
    switch (random() % 5) {
      case 0: {
        auto t = wire::make_unique<numbered>(n);
        if (random() % 2 == 0) t->by = &process;
        // Perhaps freed by now.
        t->memory = {reinterpret_cast<const std::byte*>(random() & ~std::uint64_t{63}), random() % 5000};
        q.push(std::move(t));
        expected.push_back(n);
        break;
      }
      case 1:
        if (!expected.empty()) {
          ASSERT_EQ(pop_number(q), expected.front());
          expected.pop_front();
        }
        break;
      default:
        if (q.wants_memory()) q.fetch();
    }
    ASSERT_EQ(q.empty(), expected.empty());
    if (expected.empty()) {
      ASSERT_FALSE(q.wants_memory());
    }
  }
}

// Only of what comes first, and not for ever.
TEST(idle_queue, fetches_the_first_ones_and_then_rests) {
  idle_queue q;
  const std::vector<std::byte> memory(10'000);
  for (int n = 0; n < 5; ++n) {
    auto t = wire::make_unique<numbered>(n);
    t->memory = memory;
    q.push(std::move(t));
  }
  const std::size_t lines = (memory.size() + 63) / 64;
  const std::size_t steps = 2 + (lines + idle_queue::lines_at_once - 1) / idle_queue::lines_at_once;
  const auto fetch_all = [&] {
    std::size_t n = 0;
    for (; q.wants_memory() && n < 1000; ++n) q.fetch();
    return n;
  };
  EXPECT_EQ(fetch_all(), idle_queue::tasks_ahead * steps);
  EXPECT_EQ(pop_number(q), 0);
  EXPECT_EQ(fetch_all(), steps);
  EXPECT_EQ(pop_number(q), 1);
  q.fetch();  // in the middle of one that has not its turn yet
  EXPECT_EQ(pop_number(q), 2);
  EXPECT_EQ(pop_number(q), 3);  // this one
  EXPECT_EQ(fetch_all(), steps);
  EXPECT_EQ(pop_number(q), 4);
  EXPECT_FALSE(q.wants_memory());
}

TEST(idle_queue, asks_for_a_bounded_part_of_large_memory) {
  idle_queue q;
  auto t = wire::make_unique<numbered>(0);
  const std::byte here{};  // nobody reads what is behind it
  t->memory = {&here, std::size_t{1} << 40};
  q.push(std::move(t));
  std::size_t n = 0;
  for (; q.wants_memory() && n < 100'000; ++n) q.fetch();
  EXPECT_EQ(n, 2 + idle_queue::most_bytes / 64 / idle_queue::lines_at_once);
}

TEST(idle_queue, ends_with_a_million_tasks_in_it) {
  int alive = 1'000'000;
  {
    idle_queue q;
    for (int n = 0; n < 1'000'000; ++n) q.push(wire::make_unique<numbered>(n, &alive));
    EXPECT_EQ(alive, 1'000'000);
  }
  EXPECT_EQ(alive, 0);
}

}  // namespace idle_queue_tests
}  // namespace orrery::scheduler
