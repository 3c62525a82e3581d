// SPDX-License-Identifier: Apache-2.0
// Shared data against a model (internal/test_model.hpp), in worlds of threads and in simulated
// ones, where nothing is memory of another PE.
#include <orrery/process/internal/test_world.hpp>
#include <orrery/shared/internal/test_model.hpp>
#include <orrery/transport/internal/test_seed.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace orrery::testing {
namespace {

void expect_like_model(std::uint64_t seed) {
  for (const std::string& wrong : compare_with_model(seed)) ADD_FAILURE() << wrong;
}

TEST(shared_model, threads_read_and_write_as_a_plain_vector) {
  const std::uint64_t seed = test_seed();
  for (std::uint64_t i = 0; i < 10; ++i) in_world(2, [&] { expect_like_model(seed + i); });
}

class simulated_shared : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(simulated_shared, machines_read_and_write_as_a_plain_vector) {
  const std::uint64_t many = slowed_down ? 10 : 250;  // 12,500 in all, 10,000 of several machines
  for (std::uint64_t i = 0; i < many; ++i) {
    const std::uint64_t seed = GetParam() * many + i;
    in_simulation(fmt::format("machines={},pes={},jitter=5us,seed={}", 1 + seed % 5, 1 + seed % 3 / 2, seed),
                  [&] { expect_like_model(seed); });
  }
}
INSTANTIATE_TEST_SUITE_P(schedules, simulated_shared, ::testing::Range<std::uint64_t>(0, 50));

}  // namespace
}  // namespace orrery::testing
