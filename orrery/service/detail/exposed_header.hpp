// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

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

/// Where a range is exposed, for sessions of other OS processes. Without an id it is not.
struct exposed_place {
  exposed_name memory;
  std::uint64_t header = 0;  ///< its address there
  std::uint64_t id = 0;

  template <class A>
  void serialize(A& a) {
    a & memory & header & id;
  }
};

/// The part of a range by which others find the rest (exposed_range). It lies in a place of its
/// own, where nothing but such headers ever lies: a session that reads it when the range is gone
/// finds the header of another range, or of none.
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

/// The exposed memory of another OS process as it is mapped here; of this one, as it is.
class mapped_exposure {
 public:
  /// Null if it cannot be mapped. Those who ask for the same one share it.
  [[nodiscard]] static std::shared_ptr<const mapped_exposure> of(const exposed_name& name);

  /// Where something of the owner's lies here; null if that is not all within the memory.
  [[nodiscard]] const std::byte* at(std::uint64_t owners, std::size_t length) const noexcept {
    if (owners - begin_ > size_ || length > size_ - (owners - begin_)) return nullptr;
    return data_ + (owners - begin_);
  }

 private:
  std::shared_ptr<const void> memory_;
  const std::byte* data_ = nullptr;
  std::uint64_t begin_ = 0;
  std::uint64_t size_ = 0;
};

}  // namespace orrery::service
