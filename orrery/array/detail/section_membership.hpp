// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/message_sections.hpp>
#include <orrery/array/detail/sequence_number.hpp>

#include <cstdint>
#include <vector>

namespace orrery::detail {

/// A section that an element belongs to (section.hpp). Travels with it.
struct membership {
  std::uint64_t section = 0;
  std::uint32_t home = 0;  ///< PE where the element's contributions are counted
  sequence_number contributed = before_first;  ///< reductions of the section so far
  sequence_number broadcasts = before_first;  ///< broadcasts of the section that it has executed
  /// A broadcast that has come before one that was sent before it, by another way. Each counts as
  /// begun.
  struct early_broadcast {
    sequence_number number;
    std::uint32_t handler = 0;
    bytes message;  ///< on the wire; empty: it failed, and only counts
  };
  std::vector<early_broadcast> early;

  /// True if it is the turn of that broadcast, which counts as executed then.
  bool take_turn(sequence_number number, bool whatever_is_missing) noexcept {
    if (number != broadcasts.next() && !whatever_is_missing) return false;
    if (broadcasts < number) broadcasts = number;
    return true;
  }
};

}  // namespace orrery::detail
