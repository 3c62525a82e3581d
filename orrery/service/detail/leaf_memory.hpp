// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace orrery::service {

/// Memory of the leaves of lists, in huge pages.
///
/// Problem: requests reach the leaves of a large list at random. In pages of 4 KiB most of them
/// wait for an address to be translated, too, and a leaf from operator new begins amid a line of
/// the cache.
///
/// Leaves of one size share blocks of 2 MiB, which are asked for as huge pages, but for the first
/// block: small lists need no more memory than they use. Each leaf begins with a line of the cache.
/// A block whose leaves are all free goes back to the system, unless it is the last one with room.
/// Leaves of more than 64 KiB, and those of a build with a sanitizer, are from operator new. But
/// leaves that others may read are from exposed_memory, if this OS process has it.
///
/// Any thread may call it at any time. It takes a lock: it is for leaves, which come and go seldom.
class leaf_memory {
 public:
  static constexpr std::size_t line = 64;

  /// Memory that begins with a line of the cache. `exposed`: others may read it, if there is
  /// exposed memory. Throws std::bad_alloc.
  [[nodiscard]] static void* take(std::size_t size, bool exposed = false);
  /// Memory of any size that others may read; from operator new if there is no exposed memory.
  /// Throws std::bad_alloc.
  [[nodiscard]] static void* take_array(std::size_t size);
  /// `size` as it was taken.
  static void give_back(void* leaf, std::size_t size) noexcept;
  static void give_back_array(void* at, std::size_t size) noexcept;
  /// The part of a block that such a leaf takes.
  [[nodiscard]] static constexpr std::size_t bytes_of(std::size_t size) noexcept {
    return (size + line - 1) / line * line;
  }
};

/// Arrays that others may read, for std::vector.
template <class T>
struct exposed_allocator {
  using value_type = T;
  exposed_allocator() noexcept = default;
  template <class U>
  exposed_allocator(const exposed_allocator<U>&) noexcept {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] T* allocate(std::size_t n) { return static_cast<T*>(leaf_memory::take_array(n * sizeof(T))); }
  void deallocate(T* at, std::size_t n) noexcept { leaf_memory::give_back_array(at, n * sizeof(T)); }
  friend bool operator==(const exposed_allocator&, const exposed_allocator&) noexcept { return true; }
};

}  // namespace orrery::service
