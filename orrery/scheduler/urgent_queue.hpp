// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/run_queue.hpp>
#include <orrery/scheduler/sink.hpp>
#include <orrery/scheduler/slot.hpp>
#include <orrery/wire/envelope.hpp>

#include <deque>

namespace orrery::scheduler {

/// The processes of a PE that have urgent messages and can run.
///
/// Problem: an urgent message goes before all others of its process and of its PE, but a program
/// that sends none is not to pay for that. So the message stands before the others in its mailbox,
/// the process stands here, and a sink stands for the queue at the very front of the PE's run
/// queue: the loop comes to that sink as to the sink of a call that has ended. A process that was
/// in the run queue already leaves another sink in its old place there, which is passed over.
///
/// Made by its PE with the first urgent message; of the PE's thread. Invariants: (1) a process here
/// is `scheduled` and not in the run queue; (2) while any is here, `next_` is in the run queue,
/// once.
class urgent_queue {
 public:
  urgent_queue() = default;
  urgent_queue(const urgent_queue&) = delete;
  urgent_queue& operator=(const urgent_queue&) = delete;

  /// The message that the process would run next is urgent.
  [[nodiscard]] static bool begins(const slot& s) noexcept {
    return s.last->next->head.kind == wire::record_kind::urgent;
  }
  /// Puts an urgent message into a mailbox, behind those that are urgent too and behind one that
  /// constructs the object; charges nothing. True if it is what the process will run next.
  static bool insert(slot& s, message* m) noexcept;

  [[nodiscard]] bool owns(const sink& s) const noexcept { return &s == &next_ || &s == &passed_over_; }
  [[nodiscard]] bool is_next(const sink& s) const noexcept { return &s == &next_; }
  /// The process is `scheduled`; it is in the run queue, or nowhere.
  void push(slot& s, run_queue& others);
  /// It is in the run queue: it stands here from now on. Nothing if it is here already.
  void take_over(slot& s, run_queue& others);
  /// When `next_` has come out of the run queue.
  [[nodiscard]] slot& pop(run_queue& others);

 private:
  std::deque<slot*> all_;
  sink next_;
  sink passed_over_;
};

}  // namespace orrery::scheduler
