// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/service/detail/exposed_header.hpp>
#include <orrery/service/detail/key_ownership.hpp>
#include <orrery/wire/serialize.hpp>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace orrery::service {

/// Whether the program has an order of its own for these keys.
template <class Key>
concept has_own_order =
    std::is_enum_v<Key> && (requires(Key k) { operator<(k, k); } || requires(Key k) { operator<=>(k, k); });

/// Numbers that can be compared whatever their bits are; a bool cannot.
template <class Key>
concept takes_any_bits = std::is_arithmetic_v<Key> && !std::is_same_v<Key, bool>;

/// Such a number, or an enumeration of them.
template <class Key>
concept number_like = takes_any_bits<Key> || (std::is_enum_v<Key> && takes_any_bits<std::underlying_type_t<Key>>);

/// Whether other OS processes may look up such keys in the memory of their range. While a look-up
/// goes on, the range may change, and it sees any bits: so keys are what can be compared whatever
/// their bits are, with the order that the language has for them. Values lie there as they travel,
/// so that all programs read the same.
template <class Key, class Value>
inline constexpr bool can_be_exposed =
    number_like<Key> && !has_own_order<Key> && sizeof(Key) <= exposed_header::key_room &&
    trivially_serializable<Value> && std::is_trivially_copyable_v<Value> && alignof(Value) <= 64;

class exposed_memory;

/// A range as other OS processes of its machine may read it.
///
/// Problem: others read the leaves and their index while the range changes them, or when it has
/// given them away.
///
/// A sequence lock. Before anything changes the range closes its header, and opens it again when
/// all is as a request may find it: the keys that it owns, its leaves, and their index. A reader
/// takes what it has read for true only if the header was open, and had one version, from before it
/// began until after it had ended. So what it has read is what the range held at one moment
/// meanwhile. A range that has given its keys away stays closed. One that has been given keys opens
/// with its first requests: whoever gave them knows by then that it has them.
///
/// Invariants
///   I1  While `version` is even, the keys, values and index that the header names do not change.
///   I2  A version comes once, also in the headers of ranges that have the place later.
///   I3  Requests that change something are answered when the header is open again: who has the
///       reply, or hears of it, reads what was written.
///
/// Part of a range; used by its process only.
class exposed_range {
 public:
  /// Where a range of this process is exposed: null if nobody could read it, or the system gives no
  /// memory for it.
  [[nodiscard]] static exposed_memory* memory_here() noexcept;

  /// Closed. Nothing is exposed if there is no memory.
  explicit exposed_range(exposed_memory* memory) noexcept;
  exposed_range(const exposed_range&) = delete;
  exposed_range& operator=(const exposed_range&) = delete;
  ~exposed_range();

  /// Nobody reads from now on.
  void close() noexcept {
    if (header_ == nullptr || (version_ & 1U) != 0) return;
    header_->version.store(++version_, std::memory_order_relaxed);
    waits_ = false;
    // SYNC: release, with the second look of one_sided_reader: who reads a later write sees this.
    std::atomic_thread_fence(std::memory_order_release);
  }
  /// Opens it, closed, as it is now. `Leaves`: see sorted_leaves::show_in.
  template <class Key, class Leaves>
  void open(const owned_keys<Key>& keys, const Leaves& items) noexcept {
    if (header_ == nullptr || (version_ & 1U) == 0) return;
    items.show_in(*header_);
    header_->keys_version = keys.version;
    header_->bounds = (keys.from ? 1U : 0U) | (keys.to ? 2U : 0U);
    if (keys.from) std::memcpy(header_->from, &*keys.from, sizeof(Key));
    if (keys.to) std::memcpy(header_->to, &*keys.to, sizeof(Key));
    // SYNC: release, with the first look of one_sided_reader.
    header_->version.store(++version_, std::memory_order_release);
  }
  /// It is to be opened with its next requests.
  void open_later() noexcept { waits_ = true; }
  [[nodiscard]] bool opens_now() const noexcept { return waits_; }
  /// It has executed so many requests.
  void served(std::uint64_t requests) noexcept {
    if (header_ != nullptr) header_->served.store(requests, std::memory_order_relaxed);
  }
  [[nodiscard]] exposed_place place() const noexcept;

 private:
  exposed_header* header_ = nullptr;
  std::uint64_t version_ = 1;  // as in the header
  bool waits_ = false;  // to be opened
};

}  // namespace orrery::service
