// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace orrery::scheduler {

/// How far a PE has come in shutting down; shutdown.cpp says what each stage is.
enum class shutdown_stage : std::uint8_t { running, finishing, cancelling, quiet, destroying, ended };

/// How many PEs of a node have come to each stage of shutting down, and how many get no further.
///
/// Problem: a stage is over for each PE of a node once all have come to it. If each looked at each
/// of the others, and woke them all, the end of a program on thousands of PEs would take their
/// number squared.
///
/// Invariants: a PE counts once at each stage, in their order; while it counts as stalled, it has
/// come to its stage and not to the next. Each PE that has seen the count complete sees all that
/// the others wrote before they were counted: adding releases, reading acquires, and each addition
/// continues the release sequence of those before. A count of stalled PEs that was read too early
/// costs a later look only.
class stage_counts {
 public:
  /// A PE has come to the stage. The number of those that have, with it.
  std::uint32_t reach(shutdown_stage s) noexcept {
    return reached_[static_cast<unsigned>(s)].fetch_add(1, std::memory_order_acq_rel) + 1;
  }
  [[nodiscard]] std::uint32_t at(shutdown_stage s) const noexcept {
    return reached_[static_cast<unsigned>(s)].load(std::memory_order_acquire);
  }
  void stall() noexcept { stalled_.fetch_add(1, std::memory_order_relaxed); }
  void go_on() noexcept { stalled_.fetch_sub(1, std::memory_order_relaxed); }
  [[nodiscard]] std::uint32_t stalled() const noexcept { return stalled_.load(std::memory_order_relaxed); }

 private:
  std::array<std::atomic<std::uint32_t>, 6> reached_{};
  std::atomic<std::uint32_t> stalled_{0};
};

}  // namespace orrery::scheduler
