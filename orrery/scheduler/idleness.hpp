// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace orrery::scheduler {

/// The state that a PE publishes when it goes to sleep; quiescence_detector.cpp adds them up. In
/// memory that all nodes see.
struct alignas(32) idleness {
  static constexpr std::uint64_t is_idle = 1;
  static constexpr std::uint64_t waits_for_quiescence = 2;  ///< a process of the PE
  static constexpr std::uint64_t holds_senders = 4;  ///< a mailbox of the PE makes senders wait
  /// Instead of is_idle: there is nothing to do before a timer fires.
  static constexpr std::uint64_t waits_for_time = 8;
  static constexpr unsigned gone_shift = 4;
  static constexpr std::uint64_t is_dead = 1;
  static constexpr std::uint64_t one_outside = 2;

  std::atomic<std::uint64_t> sent{0};  ///< bytes, in the rings to PEs that are not lost
  std::atomic<std::uint64_t> received{0};
  /// 0, or the flags and, above them, how many nodes the PE knows to be gone.
  std::atomic<std::uint64_t> idle{0};
  /// In the world's first PE `is_dead`, once it has found that nothing will ever happen again. In
  /// the first PE of each node as many times `one_outside` as threads of the node that are no PEs
  /// have work for the world. They count by themselves: who rests does not publish anew.
  std::atomic<std::uint64_t> marks{0};

  [[nodiscard]] bool found_dead() const noexcept { return (marks.load(std::memory_order_relaxed) & is_dead) != 0; }
};

/// The whole world when all its PEs are idle.
struct idle_world {
  std::uint64_t sent;
  std::uint64_t gone;  ///< nodes that have left or were lost
  bool someone_waits;
  bool someone_holds;  ///< senders back, which a raised limit will let go on
  bool works_outside;
  bool waits_for_time;  ///< some PE: it is not quiet for ever
  bool operator==(const idle_world&) const = default;
};

}  // namespace orrery::scheduler
