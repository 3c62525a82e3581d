// SPDX-License-Identifier: Apache-2.0
#include <orrery/service/detail/batch_cost.hpp>

#include <random>

#include <gtest/gtest.h>

namespace batch_cost_tests {

using orrery::service::batch_cost;

TEST(batch_cost, is_found_from_batches_of_two_sizes) {
  batch_cost c;
  for (const double n : {8.0, 128.0, 8.0, 128.0}) c.add(1 / n, 50 + 1000 / n);
  EXPECT_NEAR(c.per_batch(), 1000, 1e-6);
  EXPECT_NEAR(c.per_request(), 50, 1e-6);
  EXPECT_NEAR(c.share(1 / 200.0), 0.1, 1e-9);
}
TEST(batch_cost, is_not_known_from_batches_of_one_size) {
  batch_cost c;
  EXPECT_EQ(c.share(0.1), 0);
  for (int i = 0; i < 10; ++i) c.add(0.1, 100 + i);
  EXPECT_EQ(c.per_batch(), 0);
  EXPECT_NEAR(c.per_request(), 104, 2);
}
TEST(batch_cost, is_found_although_each_tenth_measurement_was_interrupted) {
  batch_cost c;
  std::mt19937 random(1);
  std::uniform_real_distribution<double> noise(0.9, 1.1);
  for (int i = 0; i < 200; ++i) {
    const double n = i % 2 == 0 ? 16 : 128;
    c.add(1 / n, (50 + 1000 / n) * noise(random) * (random() % 10 == 0 ? 20 : 1));
  }
  EXPECT_NEAR(c.per_batch() / c.per_request(), 20, 8);
}
TEST(batch_cost, follows_a_service_that_becomes_another_one) {
  batch_cost c;
  for (int i = 0; i < 100; ++i) c.add(i % 2 == 0 ? 0.1 : 0.01, i % 2 == 0 ? 150 : 60);
  for (int i = 0; i < 400; ++i) c.add(i % 2 == 0 ? 0.1 : 0.01, i % 2 == 0 ? 1500 : 600);
  EXPECT_NEAR(c.per_batch(), 10'000, 100);
  EXPECT_NEAR(c.per_request(), 500, 5);
}

}  // namespace batch_cost_tests
