// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests only: a world of threads around the body of a test.

#include <orrery/process/function.hpp>
#include <orrery/process/runtime.hpp>
#include <orrery/scheduler/node.hpp>

#include <concepts>
#include <cstdint>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace orrery::testing {

/// True where a sanitizer makes everything several times slower and larger.
#if defined(ORRERY_ASAN) || defined(ORRERY_TSAN)
inline constexpr bool slowed_down = true;
#else
inline constexpr bool slowed_down = false;
#endif

/// What happened on the PEs of a world that has ended.
using statistics = std::vector<scheduler::counters>;

/// Runs `body` as the main process of a world on the threads of this OS process and returns when the world has ended. An
/// exception that leaves the body is a failure of the test.
template <std::invocable<> Body>
statistics in_world(scheduler::node_settings settings, Body body) {
  scheduler::freeze_handlers();
  statistics counts;
  {
    scheduler::node world(settings, nullptr);
    world.run([&](scheduler::pe& first) {
      detail::start_function(first, [&] {
        try {
          body();
        } catch (const std::exception& e) {
          ADD_FAILURE() << "the main process ended with an exception: " << e.what();
        }
        world.stop();
      });
    });
    for (std::uint32_t i = 0; i < world.pe_count(); ++i) counts.push_back(world.local(i).count());
  }
  return counts;
}

/// The same on this many PEs, with the default settings.
template <std::invocable<> Body>
statistics in_world(std::uint32_t pes, Body body) {
  scheduler::node_settings settings;
  settings.pes = pes;
  return in_world(settings, std::move(body));
}

/// A test of what has to hold for a callee on the caller's PE and on another one: `where` is there.
class at_each_place : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  [[nodiscard]] static placement where() { return pe(GetParam()); }
  template <std::invocable<> Body>
  static statistics in_world(Body body) {
    return testing::in_world(2, std::move(body));
  }
};
inline std::string place_name(const ::testing::TestParamInfo<std::uint32_t>& info) {
  return info.param == 0 ? "same_pe" : "other_pe";
}

#define ORRERY_AT_EACH_PLACE(suite)               \
  using suite = ::orrery::testing::at_each_place; \
  INSTANTIATE_TEST_SUITE_P(at, suite, ::testing::Values(0U, 1U), ::orrery::testing::place_name)

/// The exception that f throws, as a string "type: what" of the classes that tests ask for; "" if it throws none.
template <class Error, class F>
[[nodiscard]] std::string what_is_thrown(F&& f) {
  try {
    std::forward<F>(f)();
  } catch (const Error& e) {
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

}  // namespace orrery::testing
