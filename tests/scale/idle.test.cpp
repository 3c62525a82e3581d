// SPDX-License-Identifier: Apache-2.0
// Very many processes that have nothing to do: what each costs beside its object.
#include "memory.hpp"

#include <orrery/orrery.hpp>
#include <orrery/process/internal/test_world.hpp>

#include <atomic>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

namespace orrery {
namespace {

using testing::in_world;
using testing::resident_bytes;
using testing::slowed_down;

class Idle {
 public:
  static inline std::atomic<std::size_t> alive{0};

  explicit Idle(std::size_t n) : number_(n) { ++alive; }
  Idle(const Idle&) = delete;
  Idle& operator=(const Idle&) = delete;
  ~Idle() { --alive; }
  std::size_t number() { return number_; }
  ORRERY_PROCESS_MEMBERS(Idle, number)

 private:
  std::size_t number_;
};

/// Makes processes on this PE and returns every step-th.
std::vector<remote<Idle>> make(std::size_t first, std::size_t count, std::size_t step) {
  std::vector<remote<Idle>> some;
  some.reserve(count / step + 1);
  for (std::size_t i = 0; i < count; ++i) {
    const auto p = spawn<Idle>(here(), first + i);
    if (i % step == 0) some.push_back(p);
  }
  return some;
}

void check(const std::vector<remote<Idle>>& some, std::size_t first, std::size_t step) {
  for (std::size_t i = 0; i < some.size(); ++i) ASSERT_EQ(some[i]->number(), first + i * step);
}

TEST(idle_processes, cost_at_most_128_bytes_each_beside_their_object) {
  static constexpr std::size_t count = slowed_down ? 20'000 : 1'000'000;
  in_world(1, [] {
    const std::size_t before = resident_bytes();
    const auto some = make(0, count, 1000);
    const std::size_t each = (resident_bytes() - before) / count;
    RecordProperty("bytes_of_an_idle_process", static_cast<int>(each));
    EXPECT_TRUE(slowed_down || each <= 128 + sizeof(Idle)) << each << " bytes each";
    EXPECT_EQ(Idle::alive.load(), count);
    check(some, 0, 1000);
  });
  EXPECT_EQ(Idle::alive.load(), 0U);
}

TEST(idle_processes, give_their_memory_to_those_that_come_after_them) {
  static constexpr std::size_t count = slowed_down ? 5'000 : 300'000;
  in_world(1, [] {
    std::size_t after_first = 0;
    for (int round = 0; round < 5; ++round) {
      const auto all = make(0, count, 1);
      if (round == 0) after_first = resident_bytes();
      check(all, 0, 1);
      for (const auto& p : all) destroy(p);
      EXPECT_EQ(Idle::alive.load(), 0U);
    }
    EXPECT_TRUE(slowed_down || resident_bytes() <= after_first + after_first / 10);
  });
}

TEST(idle_processes, fit_ten_million_into_two_gibibytes) {
  static constexpr std::size_t count = slowed_down ? 50'000 : 10'000'000;
  if (!slowed_down && testing::available_bytes() < std::size_t{3} << 30)
    GTEST_SKIP() << "the machine has no 3 GiB left";
  in_world(2, [] {
    auto far = start_call<&make>(pe(1), 0, count / 2, 5000);
    const auto near = make(count / 2, count / 2, 5000);
    const auto some = far.get();
    EXPECT_EQ(Idle::alive.load(), count);
    EXPECT_TRUE(slowed_down || resident_bytes() < std::size_t{2} << 30) << resident_bytes() << " bytes";
    check(some, 0, 5000);
    check(near, count / 2, 5000);
  });
  EXPECT_EQ(Idle::alive.load(), 0U);
}

}  // namespace
}  // namespace orrery
