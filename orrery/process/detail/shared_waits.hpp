// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/future.hpp>

#include <cstdint>
#include <vector>

namespace orrery::detail {

/// Those that wait for the result of a shared future.
///
/// Problem: several methods wait for one result, and some of them give up after a time. So each has
/// a sink of its own on its stack, in a list that it leaves when it goes on. The end of the world
/// needs no care: the result ends with `stopped` then, as that of any future does, and who waits
/// gets it so. Probes follow each wait to the call behind the result.
///
/// Part of the state of a shared future, which outlives the waits; used on its PE only.
class shared_waits {
 public:
  shared_waits() = default;
  shared_waits(const shared_waits&) = delete;
  shared_waits& operator=(const shared_waits&) = delete;

  /// Parks the caller until tell_all(); or, if the deadline is not negative, until then: false if
  /// it was not told. Throws usage_error outside of a process, and with a deadline `stopped`.
  bool wait(const scheduler::sink& result, std::int64_t deadline_ns = -1);
  /// A future that tell_all() completes; it is complete if the result is there.
  [[nodiscard]] future<void> told(const scheduler::sink& result);
  /// The result is there.
  void tell_all(pe& self);

 private:
  struct one;
  one* first_ = nullptr;  // the oldest
  one** last_ = &first_;  // where the next one goes
  std::vector<following_state<void>*> followers_;  // each with a hold
};

}  // namespace orrery::detail
