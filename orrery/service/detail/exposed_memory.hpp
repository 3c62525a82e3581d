// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/transport/shm/segment.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace orrery::service {

/// Names the exposed memory of an OS process for others of its machine.
struct exposed_name {
  std::int32_t pid = 0;
  std::int32_t fd = -1;
  std::uint64_t started = 0;  ///< when the OS process began: a pid comes back
  std::uint64_t bytes = 0;
  std::uint64_t begin = 0;  ///< its address there

  template <class A>
  void serialize(A& a) {
    a & pid & fd & started & bytes & begin;
  }
};

/// What others see of a range (exposed_range). It lies in a place of its own, where nothing but
/// such headers ever lies: who reads it when the range is gone finds another range's, or none.
struct alignas(64) exposed_header {
  static constexpr std::size_t key_room = 16;

  /// Odd: what follows changes, or there is nothing to be seen.
  std::atomic<std::uint64_t> version;
  std::uint64_t id;  ///< of the range; never again of another one of this OS process
  std::uint64_t layout;  ///< sorted_leaf::layout
  std::uint64_t keys_version;  ///< see owned_keys
  // where they lie in the owner's address space
  std::uint64_t least;
  std::uint64_t sizes;
  std::uint64_t leaves;
  std::uint32_t count;  ///< of leaves; 0: more than there can be
  std::uint32_t bounds;  ///< 1: there is `from`, 2: there is `to`
  std::byte from[key_room];
  std::byte to[key_room];
  /// Requests that the range has executed. In a line of its own: it changes with each batch.
  alignas(64) std::atomic<std::uint64_t> served;
};

/// Memory of this OS process that others of its machine may read: leaves of lists, and where they
/// lie.
///
/// Problem: a look-up in a list of another OS process takes 0.1 to 0.3 us of memory's time, and as a
/// message two to three times as much.
///
/// A sparse anonymous file (transport::segment), which others map to read. It is given out in
/// blocks of 2 MiB, in huge pages where the system has such. Memory that comes back reads as zero.
///
/// One for each OS process, made when its first list needs it, and never destroyed: others may read
/// it at any time. All calls are thread-safe, and do not park.
class exposed_memory {
 public:
  static constexpr std::size_t block = std::size_t{2} << 20U;

  /// Makes it. Null if the system does not give it: then nothing is exposed.
  static exposed_memory* make() noexcept;
  /// Null if it is not made.
  [[nodiscard]] static exposed_memory* made() noexcept { return made_.load(std::memory_order_acquire); }

  [[nodiscard]] bool has(const void* at) const noexcept {
    return reinterpret_cast<std::uintptr_t>(at) - reinterpret_cast<std::uintptr_t>(memory_.data()) < memory_.size();
  }
  /// Whole blocks that follow each other, of at least so many bytes. `huge`: in huge pages, with
  /// memory; else back() gives it. Throws std::bad_alloc.
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

/// The exposed memory of another OS process as it is mapped here; of this one, as it is.
class mapped_exposure {
 public:
  /// Null if it cannot be mapped. Those who ask for the same one share it.
  [[nodiscard]] static std::shared_ptr<const mapped_exposure> of(const exposed_name& name);

  /// Where something of the owner's lies here; null if that is not all within the memory.
  [[nodiscard]] const std::byte* at(std::uint64_t owners, std::size_t bytes) const noexcept {
    if (owners - begin_ > size_ || bytes > size_ - (owners - begin_)) return nullptr;
    return data_ + (owners - begin_);
  }

 private:
  transport::segment memory_;
  const std::byte* data_ = nullptr;
  std::uint64_t begin_ = 0;
  std::uint64_t size_ = 0;
};

}  // namespace orrery::service
