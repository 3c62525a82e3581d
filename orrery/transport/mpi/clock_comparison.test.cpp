// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/internal/test_seed.hpp>
#include <orrery/transport/mpi/clock_comparison.hpp>

#include <algorithm>
#include <cstdlib>
#include <random>

#include <gtest/gtest.h>

namespace orrery::transport {
namespace clock_comparison_tests {

TEST(a_comparison_of_clocks, takes_the_round_that_tells_most) {
  clock_comparison c;
  c.add(100, 5'000, 200);
  c.add(1'000, 5'900, 1'100);  // between 100 and 1,100
  c.add(1'110, 6'060, 1'120);  // between 1,000 and 1,120
  c.add(1'130, 6'090, 9'000);
  EXPECT_EQ(c.best().offset, 5'000);
  EXPECT_EQ(c.best().error, 60);
}

// Two ranks whose all-gathers begin and end when they like, but none before the other has begun it.
TEST(a_comparison_of_clocks, is_never_further_from_the_truth_than_it_says) {
  std::mt19937_64 random(testing::test_seed());
  for (int run = 0; run < 1'000; ++run) {
    const auto some = [&] { return static_cast<std::int64_t>(random() % 1'000); };
    const std::int64_t offset = static_cast<std::int64_t>(random() % 2'000'000) - 1'000'000;
    clock_comparison c;
    std::int64_t own = some();
    std::int64_t other = some();
    for (int i = 0; i < 10; ++i) {
      const std::int64_t own_begin = own + some();
      const std::int64_t other_begin = other + some();
      own = std::max(own_begin, other_begin) + some();
      other = std::max(own_begin, other_begin) + some();
      c.add(own_begin, other_begin + offset, own);
    }
    ASSERT_LE(std::abs(c.best().offset - offset), c.best().error) << "run " << run;
    ASSERT_LE(c.best().error, 2'500) << "run " << run;
  }
}

}  // namespace clock_comparison_tests
}  // namespace orrery::transport
