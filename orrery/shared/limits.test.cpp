// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>
#include <orrery/process/internal/test_world.hpp>
#include <orrery/shared/shared.hpp>
#include <orrery/transport/shm/arena.hpp>

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

namespace {

using orrery::distribution;
using orrery::shared_vector;
using orrery::usage_error;
using orrery::testing::in_world;

TEST(shared_data_limits, bounds_without_ends_are_refused) {
  in_world(2, [] {
    EXPECT_THROW(shared_vector<int>(10, distribution::bounds({})), usage_error);
    EXPECT_THROW(shared_vector<int>(0, distribution::bounds(std::vector<std::uint64_t>{})), usage_error);
  });
}

TEST(shared_data_limits, more_memory_than_there_is_is_refused_before_it_is_touched) {
  in_world(2, [] {
    const std::uint64_t bytes = 2 * orrery::transport::arena::machine_memory();
    EXPECT_THROW((shared_vector<char>(bytes)), orrery::world_error);
    const shared_vector<char> next(100);
    next[99] = 1;
    EXPECT_EQ(next[99], 1);
  });
}

TEST(shared_data_limits, a_step_of_0_and_one_that_wraps_around_are_refused) {
  in_world(1, [] {
    const shared_vector<int> v(10);
    EXPECT_THROW((void)every(v, 0, 0, 5), usage_error);
    EXPECT_THROW((void)every(v, std::uint64_t{1} << 63, 1, 3), usage_error);
    EXPECT_EQ(every(v, 0, 3, 1).size(), 1U);
  });
}

}  // namespace
