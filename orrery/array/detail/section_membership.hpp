// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/message_sections.hpp>

#include <cstdint>
#include <vector>

namespace orrery::detail {

/// A section that an element belongs to (section.hpp). Travels with it.
struct membership {
  std::uint64_t section = 0;
  std::uint32_t home = 0;  ///< PE where the element's contributions are counted
  std::uint32_t contributed = 0;  ///< reductions of the section so far
  std::uint32_t broadcasts = 0;  ///< broadcasts of the section that it has executed
  /// A broadcast that has come before one that was sent before it, by another way. Each counts as
  /// begun.
  struct early_broadcast {
    std::uint32_t number = 0;
    std::uint32_t handler = 0;
    bytes message;  ///< on the wire; empty: it failed, and only counts
  };
  std::vector<early_broadcast> early;

  /// True if it is the turn of that broadcast, which counts as executed then.
  bool take_turn(std::uint32_t number, bool whatever_is_missing) noexcept {
    if (number != broadcasts + 1 && !whatever_is_missing) return false;
    if (broadcasts < number) broadcasts = number;
    return true;
  }
};

}  // namespace orrery::detail
