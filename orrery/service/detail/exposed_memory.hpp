// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/service/detail/exposed_header.hpp>
#include <orrery/transport/shm/segment.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace orrery::service {

/// Memory of this OS process that others of its machine may read: leaves of lists, and where they
/// lie.
///
/// Problem: a look-up in a list of another OS process takes 0.1 to 0.3 us of memory's time, and two
/// to three times as much of a message's.
///
/// A sparse anonymous file (transport::segment), which others map to read. It is given out in
/// blocks of 2 MiB, in huge pages where that is asked for and the system has them.
///
/// One for each OS process, made when its first list needs it, and never destroyed: others may read
/// it at any time. A child that the program forks has none: it would write into its parent's. All
/// calls are thread-safe, and do not park.
class exposed_memory {
 public:
  static constexpr std::size_t block = std::size_t{2} << 20U;

  /// Makes it. Null if the system does not give it, or gives little address space (ulimit -v): then
  /// nothing is exposed.
  static exposed_memory* make() noexcept;
  /// Null if there is none.
  [[nodiscard]] static exposed_memory* made() noexcept { return made_.load(std::memory_order_acquire); }

  [[nodiscard]] bool has(const void* at) const noexcept {
    return reinterpret_cast<std::uintptr_t>(at) - reinterpret_cast<std::uintptr_t>(memory_.data()) < memory_.size();
  }
  /// A power of two of blocks that follow each other, with at least so many bytes. `huge`: in huge
  /// pages, with memory; else back() gives it. Throws std::bad_alloc.
  [[nodiscard]] void* take(std::size_t bytes, bool huge);
  /// Gives memory to a part of what was taken. Throws std::bad_alloc.
  void back(void* at, std::size_t bytes) const;
  /// `bytes` as they were taken.
  void give_back(void* at, std::size_t bytes) noexcept;

  /// A header with a new id, closed. Throws std::bad_alloc.
  [[nodiscard]] exposed_header* take_header();
  /// It is closed.
  void give_back(exposed_header* h) noexcept;

  [[nodiscard]] exposed_name name() const noexcept;

 private:
  exposed_memory(transport::segment memory, transport::peer_id self) : memory_(std::move(memory)), self_(self) {}

  static std::atomic<exposed_memory*> made_;

  transport::segment memory_;
  transport::peer_id self_;
  std::mutex mutex_;  // of what follows
  std::size_t fresh_ = 0;  // blocks from here on were never taken
  struct run {
    std::vector<std::byte*> free;
    std::size_t all = 0;
  };
  std::map<std::size_t, run> runs_;  // by the number of their blocks
  std::mutex headers_mutex_;  // of what follows; before mutex_
  std::vector<exposed_header*> headers_;  // free ones
  std::size_t all_headers_ = 0;
  std::uint64_t last_id_ = 0;
};

}  // namespace orrery::service
