// SPDX-License-Identifier: Apache-2.0
// An access by default is complete before the next one of the same process begins, and an element
// of 8 bytes is read and written whole: on threads and simulated machines; on nodes: tests/shared.
#include <orrery/process/internal/test_world.hpp>
#include <orrery/shared/internal/test_consistency.hpp>

#include <cstdint>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace orrery::testing {
namespace consistency_tests {

void expect_an_order(int rounds) {
  for (const std::string& wrong : impossible_outcomes(rounds)) ADD_FAILURE() << wrong;
}

TEST(shared_consistency, threads_see_accesses_in_one_order) {
  for (const std::uint32_t pes : {2U, 4U}) in_world(pes, [] { expect_an_order(slowed_down ? 50 : 400); });
}

TEST(shared_consistency, machines_see_accesses_in_one_order) {
  const std::uint64_t many = slowed_down ? 5 : 60;
  for (std::uint64_t seed = 0; seed < many; ++seed)
    in_simulation(
        fmt::format("machines={},pes={},jitter={}us,seed={}", 2 + seed % 3, 1 + seed % 5 / 4, 3 + seed % 20, seed),
        [] { expect_an_order(6); });
}

}  // namespace consistency_tests
}  // namespace orrery::testing
