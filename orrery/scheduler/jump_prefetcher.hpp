// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/slot.hpp>

#include <cstddef>
#include <cstdint>

#include <sys/mman.h>

namespace orrery::scheduler {

/// Fetches into the cache the processes that will run soon.
///
/// Problem: when a PE's processes do not fit into its cache, each message to one of them waits for
/// memory, and a chain of messages (a token, a wavefront, an iteration in which each step sends the
/// next) waits for one line after the other: nobody knows whom the next process will send to before
/// its line is there. But programs repeat themselves: who ran `distance` processes after a given
/// one the last time will mostly do so again. So each process remembers that one, its *jump
/// pointer*, and when it runs, that one's line is fetched: `distance` waits overlap. (Roth and
/// Sohi, "Effective jump-pointer prefetching for linked data structures", 1999.) A wrong guess
/// costs a line of the cache.
///
/// Owned by a PE, used by its thread only. The pointers lie in a table of their own, whose lines
/// are fetched with the processes'. Invariants: what is in the table or in `recent_` is an index
/// below the number of slots ever used.
class jump_prefetcher {
 public:
  /// Below this many processes (1 MiB of slots) all stay in the cache by themselves, and nothing is
  /// remembered.
  static constexpr std::uint32_t worthwhile = 1U << 14;
  static constexpr std::uint32_t distance = 16;

  jump_prefetcher() = default;
  jump_prefetcher(const jump_prefetcher&) = delete;
  jump_prefetcher& operator=(const jump_prefetcher&) = delete;
  ~jump_prefetcher() {
    if (jump_ != nullptr) munmap(jump_, bytes_);
  }

  [[nodiscard]] bool active() const noexcept { return jump_ != nullptr; }

  /// For at most that many slots. The table is only reserved; where that fails nothing is fetched,
  /// which is no error.
  void activate(std::size_t slots) noexcept {
    if (active()) return;
    bytes_ = slots * sizeof(std::uint32_t);
    void* p = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p != MAP_FAILED) jump_ = static_cast<std::uint32_t*>(p);
  }

  /// The process in slot `index` of `slots` runs now.
  void runs(std::uint32_t index, const slot* slots) noexcept {
    std::uint32_t& then = recent_[steps_++ % distance];
    jump_[then] = index;
    then = index;
    const std::uint32_t soon = expected_after(index);
    __builtin_prefetch(slots + soon, 1);
    __builtin_prefetch(jump_ + soon, 1);
  }

  /// The guess: who will run `distance` processes after that one.
  [[nodiscard]] std::uint32_t expected_after(std::uint32_t index) const noexcept { return jump_[index]; }

 private:
  std::uint32_t* jump_ = nullptr;  // by slot
  std::uint32_t steps_ = 0;
  std::uint32_t recent_[distance] = {};  // who ran last, a circle
  std::size_t bytes_ = 0;
};

}  // namespace orrery::scheduler
