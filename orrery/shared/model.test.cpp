// SPDX-License-Identifier: Apache-2.0
// Shared data against a model (internal/test_model.hpp), in worlds of threads and in simulated
// ones, where nothing is memory of another PE.
#include <orrery/process/internal/test_world.hpp>
#include <orrery/shared/internal/test_model.hpp>
#include <orrery/transport/internal/test_seed.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace orrery::testing {
namespace model_tests {

void expect_like_model(std::uint64_t seed) {
  for (const std::string& wrong : compare_with_model(seed)) ADD_FAILURE() << wrong;
}

TEST(shared_model, threads_read_and_write_as_a_plain_vector) {
  const std::uint64_t seed = test_seed();
  for (std::uint64_t i = 0; i < 10; ++i) in_world(2, [&] { expect_like_model(seed + i); });
}

constexpr std::uint64_t worlds = 50;
constexpr std::uint64_t schedules = 250;  // in each

struct machines {
  std::uint64_t machines;
  std::uint64_t pes;
};
/// Most often each PE is a machine of its own; now and then two share one, and all of them do.
constexpr machines machines_of(std::uint64_t seed) {
  const std::uint64_t kind = seed % 25;
  if (kind == 0) return {1, 2};
  if (kind <= 3) return {kind, 2};
  return {2 + kind % 4, 1};
}
constexpr std::uint64_t count_of_own_machines() {
  std::uint64_t n = 0;
  for (std::uint64_t seed = 0; seed < worlds * schedules; ++seed)
    if (machines_of(seed).pes == 1 && machines_of(seed).machines > 1) ++n;
  return n;
}
static_assert(count_of_own_machines() >= 10'000);

class simulated_shared : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(simulated_shared, machines_read_and_write_as_a_plain_vector) {
  const std::uint64_t many = slowed_down ? 10 : schedules;
  for (std::uint64_t i = 0; i < many; ++i) {
    const std::uint64_t seed = GetParam() * many + i;
    const machines m = machines_of(seed);
    in_simulation(fmt::format("machines={},pes={},jitter=5us,seed={}", m.machines, m.pes, seed),
                  [&] { expect_like_model(seed); });
  }
}
INSTANTIATE_TEST_SUITE_P(schedules, simulated_shared, ::testing::Range<std::uint64_t>(0, worlds));

}  // namespace model_tests
}  // namespace orrery::testing
