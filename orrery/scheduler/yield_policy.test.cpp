// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/yield_policy.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

namespace orrery::scheduler {
namespace {

std::uint32_t skipped(yield_policy& p) {
  std::uint32_t n = 0;
  while (p.skip()) ++n;
  return n;
}

TEST(yield_policy, yields_until_a_yield_was_long) {
  yield_policy p;
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(p.skip());
    p.was_short();
  }
}
TEST(yield_policy, skips_twice_as_many_after_each_long_yield_up_to_a_bound) {
  yield_policy p;
  std::uint32_t before = 8;
  for (int i = 0; i < 12; ++i) {
    p.was_long();
    const std::uint32_t now = skipped(p);
    EXPECT_EQ(now, std::min(2 * before, yield_policy::most_skipped));
    before = now;
  }
}
TEST(yield_policy, forgets_long_yields_by_short_ones) {
  yield_policy p;
  for (int i = 0; i < 12; ++i) p.was_long();
  (void)skipped(p);
  for (int i = 0; i < 12; ++i) p.was_short();
  EXPECT_FALSE(p.skip());
  p.was_long();
  EXPECT_EQ(skipped(p), 16U);
}

}  // namespace
}  // namespace orrery::scheduler
