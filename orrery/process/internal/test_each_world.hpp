// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/internal/test_world.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace orrery::testing {

/// Tests that run twice: on so many threads, and on simulated machines, where nothing is shared but
/// by messages. The parameter says which; INSTANTIATE_ON_THREADS_AND_MACHINES names both.
template <int Pes>
class on_threads_and_machines : public ::testing::TestWithParam<bool> {
 protected:
  static void in_each(test_body body) {
    if (GetParam()) {
      in_simulation(fmt::format("machines={},jitter=3us,seed=11", Pes), body);
    } else {
      in_world(Pes, body);
    }
  }
};

}  // namespace orrery::testing

#define INSTANTIATE_ON_THREADS_AND_MACHINES(suite) \
  INSTANTIATE_TEST_SUITE_P(on, suite, ::testing::Bool(), [](const auto& i) { return i.param ? "machines" : "threads"; })
