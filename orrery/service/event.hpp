// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/future.hpp>

namespace orrery::service {

/// A method parks until another method of its process says so.
///
/// Problem: a process of a service often has no answer yet, and must go on with other requests
/// until it has.
///
/// The process is reentrant. The method that has no answer makes an event on its stack, puts it
/// where others find it, and waits; the method that has the answer sets it. An event is set at most
/// once, and at most one method waits.
///
/// Owned by the method that waits; used by the methods of one process only.
class event {
 public:
  event() = default;
  event(const event&) = delete;
  event& operator=(const event&) = delete;
  ~event();

  /// Parks until set() has been called; returns at once if it has. Throws deadlock_error; stopped
  /// when the program ends.
  void wait();
  /// Does not park.
  void set();
  /// True if the event has happened. Does not park.
  [[nodiscard]] bool is_set() const noexcept { return set_; }

 private:
  class end_with_program;

  detail::future_state<void>* waiting_ = nullptr;
  bool set_ = false;
};

}  // namespace orrery::service
