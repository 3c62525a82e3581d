// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/sink.hpp>

namespace orrery::scheduler {

class causality;
class trace_buffer;

/// The observer of a PE's work. Owned by the PE's node.
struct pe_watch {
  trace_buffer* trace = nullptr;
  causality* order = nullptr;
};

/// By which the parts of a PE, and the layers above, say what comes before what. A small value that
/// run_state::order() gives; where nobody observes the PE, to say something costs one test.
class happens_before {
 public:
  explicit happens_before(const pe_watch* of) noexcept : watch_(of) {}

  /// Null: nobody wants to know.
  [[nodiscard]] causality* recorder() const noexcept { return watch_ != nullptr ? watch_->order : nullptr; }
  /// A later take from `key` comes after what runs now; all who give there are taken together.
  void give(const void* key) const {
    if (watch_ != nullptr) [[unlikely]]
      give_observed(key);
  }
  void take(const void* key) const {
    if (watch_ != nullptr) [[unlikely]]
      take_observed(key);
  }
  /// The order that was given there is not needed any more.
  void forget(const void* key) const noexcept {
    if (watch_ != nullptr) [[unlikely]]
      forget_observed(key);
  }
  /// The running method was parked, and goes on.
  void take_process() const {
    if (watch_ != nullptr) [[unlikely]]
      take_process_observed();
  }
  /// The result of a sink that is done is used: what made it comes before.
  void take_result(const sink& s) const noexcept {
    if (watch_ != nullptr) [[unlikely]]
      take_result_observed(s);
  }

 private:
  [[gnu::cold]] void give_observed(const void* key) const;
  [[gnu::cold]] void take_observed(const void* key) const;
  [[gnu::cold]] void take_process_observed() const;
  [[gnu::cold]] void forget_observed(const void* key) const noexcept;
  [[gnu::cold]] void take_result_observed(const sink& s) const noexcept;

  const pe_watch* watch_;
};

}  // namespace orrery::scheduler
