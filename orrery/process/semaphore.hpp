// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/call.hpp>
#include <orrery/process/describe.hpp>
#include <orrery/process/wait_until.hpp>

#include <cstddef>

namespace orrery {

class semaphore;
ORRERY_PROCESS(semaphore, acquire, try_acquire, release, available);

/// A process that lets so many at a time have something; the others wait, and get it in the order
/// in which they came.
///
///     auto licences = spawn<semaphore>(here(), 3);
///     licences->acquire();
///     ...
///     licences->release();
///
/// Each that waits does so with a stack, on the semaphore's PE if it is on another one. Units that
/// a process has acquired stay taken if the process ends, or its node is lost, without releasing
/// them. A process whose node is lost while it waits gets none.
class semaphore {
 public:
  explicit semaphore(std::size_t available) noexcept : available_(available) {}
  /// Takes one, waits for it if there is none. Throws process_gone if the semaphore is destroyed
  /// before, stopped.
  void acquire() {
    detail::wait_for_caller([this] { return available_ != 0; });
    --available_;
  }
  /// Takes one if there is one.
  [[nodiscard]] bool try_acquire() noexcept {
    if (available_ == 0) return false;
    --available_;
    return true;
  }
  /// Gives one back.
  void release() noexcept { release(1); }
  /// Gives n back. Does not park.
  void release(std::size_t n) noexcept { available_ += n; }
  /// How many are free at this moment.
  [[nodiscard]] std::size_t available() const noexcept { return available_; }

 private:
  std::size_t available_;
};

}  // namespace orrery
