// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/call.hpp>
#include <orrery/process/describe.hpp>
#include <orrery/process/wait_until.hpp>

#include <cstddef>

namespace orrery {

class latch;
ORRERY_PROCESS(latch, count_down, wait, arrive_and_wait, is_open);

/// A process that opens when it was counted down often enough, and stays open.
///
///     auto all_ready = spawn<latch>(here(), workers);
///     ... in each worker: all_ready->count_down();
///     all_ready->wait();
///
/// Any number of callers wait, each of them with a stack, on the latch's PE if they are on another
/// one. A worker that ends without counting down leaves it closed: who waits may do so with a time
/// limit, by `start(l)->wait().wait_for(1s)`.
class latch {
 public:
  explicit latch(std::size_t count) noexcept : left_(count) {}
  /// Counts down; further than to 0 it does not go.
  void count_down() noexcept { count_down(1); }
  /// Counts down by n, or to 0.
  void count_down(std::size_t n) noexcept { left_ -= n < left_ ? n : left_; }
  /// Returns when it is open. Throws process_gone if it is destroyed before, stopped.
  void wait() {
    wait_until([this] { return left_ == 0; });
  }
  /// Counts down, then waits. As wait.
  void arrive_and_wait() {
    count_down();
    wait();
  }
  /// True if `wait` would return at once.
  [[nodiscard]] bool is_open() const noexcept { return left_ == 0; }

 private:
  std::size_t left_;
};

}  // namespace orrery
