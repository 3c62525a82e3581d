// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests only: a world of threads around the body of a test.

#include <orrery/process/function.hpp>
#include <orrery/process/internal/simulated_world.hpp>
#include <orrery/process/runtime.hpp>
#include <orrery/process/simulation.hpp>
#include <orrery/scheduler/node.hpp>

#include <concepts>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#ifdef ORRERY_ASAN
#include <sanitizer/lsan_interface.h>
#endif

namespace orrery::testing {

/// True where a sanitizer makes everything several times slower and larger.
#if defined(ORRERY_ASAN) || defined(ORRERY_TSAN)
inline constexpr bool slowed_down = true;
#else
inline constexpr bool slowed_down = false;
#endif

/// A node that is lost runs no destructors, like one that is killed: what it owned stays until the program ends.
struct leaks_expected {
#ifdef ORRERY_ASAN
  __lsan::ScopedDisabler until_the_end_of_the_test;
#endif
  leaks_expected() = default;
  leaks_expected(const leaks_expected&) = delete;
  ~leaks_expected() {}
};

/// What happened on the PEs of a world that has ended.
using statistics = std::vector<scheduler::counters>;

template <class Body, class End>
void start_body(scheduler::pe& first, Body& body, End end) {
  detail::start_function(first, [&body, end] {
    try {
      body();
    } catch (const std::exception& e) {
      ADD_FAILURE() << "the main process ended with an exception: " << e.what();
    }
    end();
  });
}

/// Runs `body` as the main process of a simulated world.
template <std::invocable<> Body>
statistics in_simulation(const transport::sim_settings& sim, const scheduler::node_settings& settings, Body body,
                         scheduler::sim_report* report = nullptr) {
  scheduler::freeze_handlers();
  statistics counts;
  detail::simulated_world world(sim, settings);
  world.simulator().run([&](scheduler::pe& first) {
    start_body(first, body, [&world] {
      world.leave();
      world.simulator().at(0).owner().stop();
    });
  });
  for (std::uint32_t i = 0; i < sim.all_pes(); ++i) counts.push_back(world.simulator().at(i).count());
  if (report != nullptr) *report = world.simulator().report();
  return counts;
}
template <std::invocable<> Body>
statistics in_simulation(std::string_view sim, Body body, scheduler::sim_report* report = nullptr) {
  return in_simulation(parse_simulation(sim), {}, std::move(body), report);
}

/// Runs `body` as the main process of a world on the threads of this OS process and returns when the world has ended. An
/// exception that leaves the body is a failure of the test.
///
/// With ORRERY_TEST_SIM=LIST in the environment the world is a simulated one instead, as --orrery-sim=LIST says, with as many PEs: on one machine, or, if
/// it says `machines`, each on its own. Not for tests that wait for real time or for other threads: those would never end.
template <std::invocable<> Body>
statistics in_world(scheduler::node_settings settings, Body body) {
  scheduler::freeze_handlers();
  if (const char* spec = std::getenv("ORRERY_TEST_SIM")) {  // NOLINT(concurrency-mt-unsafe): nobody sets it
    transport::sim_settings sim = parse_simulation(spec);
    const std::uint32_t pes = settings.pes != 0 ? settings.pes : 2;
    (sim.machines > 1 ? sim.machines : sim.pes) = pes;
    return in_simulation(sim, settings, std::move(body));
  }
  statistics counts;
  {
    scheduler::node world(settings, nullptr);
    world.run([&](scheduler::pe& first) { start_body(first, body, [&] { world.stop(); }); });
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
