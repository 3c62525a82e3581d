// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/idleness.hpp>

#include <cstdint>
#include <optional>

namespace orrery::scheduler {

struct fiber;
class pe;

/// The part of a PE that finds that nothing runs, nothing is queued and nothing is on its way in
/// the whole world.
///
/// Problem: each PE knows only itself; a message may be between two PEs that are both idle when one
/// looks. So each PE publishes, before it sleeps, that it is idle, and how much it has sent and
/// received; whoever wants to know adds these up twice (quiescence_detector.cpp says why that is a
/// proof). Three ask: processes in quiescence(), PEs whose full mailboxes hold senders back, and
/// the first PE, as a world where nothing will ever happen again is dead.
///
/// Owned by the PE, used on its thread.
class quiescence_detector {
 public:
  explicit quiescence_detector(pe& of) noexcept : of_(of) {}
  quiescence_detector(const quiescence_detector&) = delete;
  quiescence_detector& operator=(const quiescence_detector&) = delete;

  /// Parks until nothing is queued, running or on its way anywhere in the world but for those who
  /// wait here too. Throws stopped, usage_error.
  void wait();
  /// A process of this PE is in wait().
  [[nodiscard]] bool someone_waits() const noexcept { return waiters_ != nullptr; }
  /// Ends all wait()s.
  void let_go();

  /// Parks the main process until nothing is queued, running or on its way anywhere in the world,
  /// timers aside; at most for `limit_ns`. Before the world ends. Throws std::bad_alloc.
  void settle(std::int64_t limit_ns);
  [[nodiscard]] bool settles() const noexcept { return settler_ != nullptr; }
  [[nodiscard]] std::int64_t settle_deadline() const noexcept { return settle_deadline_; }
  /// Ends settle().
  void end_settling() noexcept;

  /// From here until end_rest() the PE does nothing but look whether something has come, and others
  /// see that. `for_time`: or until a timer fires.
  void rest(bool for_time = false) noexcept;
  void end_rest() noexcept;
  [[nodiscard]] bool resting() const noexcept { return resting_; }
  /// Called by a PE that rests. When it should look again; -1: no need. Lets those go on who need
  /// not wait any more.
  std::int64_t look(std::int64_t now);

  /// The world ends because it is dead: says on stderr, once, what waits on this PE. (For the first
  /// PE, who has found it says so.)
  void tell_waits();

 private:
  pe& of_;
  fiber* waiters_ = nullptr;
  fiber* settler_ = nullptr;
  std::int64_t settle_deadline_ = 0;
  bool resting_ = false;
  /// The whole world, if it is idle and was the same at two looks, the second of which began after
  /// the first.
  [[nodiscard]] std::optional<idle_world> look_twice() noexcept;

  bool told_ = false;
  std::optional<idle_world> first_look_;  // in a world of several machines
  // of counters of other machines: the one that is good for the next look; 0: none is asked for
  std::uint64_t round_ = 0;
  std::int64_t next_look_ = 0;
};

}  // namespace orrery::scheduler
