// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/stack_sizes.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

#include <gtest/gtest.h>

namespace orrery::scheduler {
namespace stack_sizes_tests {

constexpr std::size_t usual = 64 << 10;

std::size_t size_of(const stack& s) { return static_cast<std::size_t>(s.top - s.bottom); }

TEST(stack_sizes, gives_what_is_asked_for_and_at_least_the_usual_size) {
  stack_sizes stacks(usual);
  for (const std::size_t bytes : {std::size_t{0}, usual - 1, usual, usual + 1, 3 * usual, std::size_t{1} << 20}) {
    const stack s = stacks.allocate(bytes);
    EXPECT_GE(size_of(s), bytes);
    EXPECT_GE(size_of(s), usual);
    EXPECT_LE(size_of(s), 2 * std::max(bytes, usual) + (16 << 10));
    std::memset(s.bottom, 0x5a, size_of(s));
    EXPECT_TRUE(in_stack_guard(s.bottom - 1)) << bytes;
  }
}

TEST(stack_sizes, gives_each_stack_back_to_those_of_its_size) {
  stack_sizes stacks(usual);
  const std::size_t sizes[] = {0, 3 * usual, 100 * usual, 4 * usual};
  std::vector<stack> all;
  for (int i = 0; i < 40; ++i) all.push_back(stacks.allocate(sizes[i % 4]));
  for (const stack& s : all) stacks.release(s);
  // The same memory, the one that came back last first: the second and the fourth size are one.
  EXPECT_EQ(stacks.allocate(0).bottom, all[36].bottom);
  EXPECT_EQ(stacks.allocate(2 * usual + 1).bottom, all[39].bottom);
  EXPECT_EQ(stacks.allocate(3 * usual).bottom, all[37].bottom);
  const std::byte* const largest =
      stacks.allocate(100 * usual).bottom;  // few of these keep their pages, and they come first
  EXPECT_TRUE(std::ranges::any_of(all, [&](const stack& s) { return s.bottom == largest; }));
}

TEST(stack_sizes, refuses_what_is_out_of_reason) {
  stack_sizes stacks(usual);
  EXPECT_THROW((void)stacks.allocate(stack_sizes::most + 1), std::bad_alloc);
  EXPECT_THROW((void)stacks.allocate(SIZE_MAX), std::bad_alloc);
  EXPECT_GE(size_of(stacks.allocate(stack_sizes::most)), stack_sizes::most);  // address space only
}

}  // namespace stack_sizes_tests
}  // namespace orrery::scheduler
