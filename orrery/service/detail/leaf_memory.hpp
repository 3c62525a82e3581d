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
/// Leaves of more than 64 KiB, and those of a build with a sanitizer, are from operator new.
///
/// Any thread may call it at any time. It takes a lock: it is for leaves, which come and go seldom.
class leaf_memory {
 public:
  static constexpr std::size_t line = 64;

  /// Memory that begins with a line of the cache. Throws std::bad_alloc.
  [[nodiscard]] static void* take(std::size_t size);
  /// `size` as it was taken.
  static void give_back(void* leaf, std::size_t size) noexcept;
  /// The part of a block that such a leaf takes.
  [[nodiscard]] static constexpr std::size_t bytes_of(std::size_t size) noexcept {
    return (size + line - 1) / line * line;
  }
};

}  // namespace orrery::service
