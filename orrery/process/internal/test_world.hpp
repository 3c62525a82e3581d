// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests only: a world of threads around the body of a test.

#include <orrery/process/detail/simulation.hpp>
#include <orrery/process/function.hpp>
#include <orrery/process/runtime.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/scheduler/sanitizers.hpp>

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#ifdef ORRERY_ASAN
#include <sanitizer/lsan_interface.h>
#endif

namespace orrery::testing {

using scheduler::slowed_down;

/// A node that is lost runs no destructors, like one that is killed: what it owned stays until the
/// program ends.
struct leaks_expected {
#ifdef ORRERY_ASAN
  __lsan::ScopedDisabler until_the_end_of_the_test;
#endif
  leaks_expected() = default;
  leaks_expected(const leaks_expected&) = delete;
  ~leaks_expected() {}
};

/// The events on the PEs of a world that has ended.
using statistics = std::vector<scheduler::counters>;

/// A reference to what a test runs. The functions below take it instead of a type of their own for
/// each test, so that the compiler translates worlds once.
class test_body {
 public:
  template <std::invocable<> F>
    requires(!std::same_as<std::remove_cvref_t<F>, test_body> && !std::is_function_v<std::remove_reference_t<F>>)
  test_body(F&& f) noexcept  // NOLINT(google-explicit-constructor): tests pass lambdas
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))),
        call_([](void* o) { (*static_cast<std::remove_reference_t<F>*>(o))(); }) {}
  test_body(void (*f)()) noexcept  // NOLINT(google-explicit-constructor)
      : object_(reinterpret_cast<void*>(f)), call_([](void* o) { reinterpret_cast<void (*)()>(o)(); }) {}
  void operator()() const { call_(object_); }

 private:
  void* object_;
  void (*call_)(void*);
};

/// Runs `body` as the main process of a simulated world. With ORRERY_TEST_CARRIERS in the
/// environment messages between its machines go through carriers, as with carriers=on in the list.
/// With ORRERY_TEST_CUTS nodes that the list loses are cut off instead, where there are carriers.
statistics in_simulation(const transport::sim_settings& sim, const scheduler::node_settings& settings, test_body body,
                         scheduler::sim_report* report = nullptr);
statistics in_simulation(std::string_view sim, test_body body, scheduler::sim_report* report = nullptr);

/// Runs `body` as the main process of a world on the threads of this OS process and returns when
/// the world has ended. An exception that leaves the body is a failure of the test.
///
/// With ORRERY_TEST_SIM=LIST in the environment the world is a simulated one instead, as
/// --orrery-sim=LIST says, with as many PEs: on one machine, or, if it says `machines`, each on its
/// own. Not for tests that wait for real time or for other threads: those would never end.
///
/// With ORRERY_TEST_SERIALIZE in the environment messages inside a node are written and read, as
/// with --orrery-serialize.
statistics in_world(scheduler::node_settings settings, test_body body);
/// The same on this many PEs, with the default settings.
statistics in_world(std::uint32_t pes, test_body body);

/// A test of what has to hold for a callee on the caller's PE and on another one: `where` is there.
class at_each_place : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  [[nodiscard]] static placement where() { return pe(GetParam()); }
  static statistics in_world(test_body body) { return testing::in_world(2, body); }
};
inline std::string place_name(const ::testing::TestParamInfo<std::uint32_t>& info) {
  return info.param == 0 ? "same_pe" : "other_pe";
}

#define ORRERY_AT_EACH_PLACE(suite)               \
  using suite = ::orrery::testing::at_each_place; \
  INSTANTIATE_TEST_SUITE_P(at, suite, ::testing::Values(0U, 1U), ::orrery::testing::place_name)

/// Runs f; an exception does not matter, as long as it ends.
template <class F>
void attempt(F f) {
  try {
    f();
  } catch (const std::exception&) {
  }
}

/// The exception that f throws, as a string "type: what" of the classes that tests ask for; "" if
/// it throws none.
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
