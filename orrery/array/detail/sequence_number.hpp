// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>

namespace orrery::detail {

/// The number of a broadcast, or of a reduction, among those of one array or section.
///
/// An array may live for more of them than 32 bits can count. Each element keeps two such numbers,
/// which are to be small: so they begin again at 0. Numbers are ordered by the shorter way from one
/// to the other. Those that an array compares are never 2^31 apart, as everything between them is
/// still in memory.
struct sequence_number {
  std::uint32_t value = 0;

  [[nodiscard]] constexpr sequence_number next() const noexcept { return {value + 1}; }
  friend constexpr bool operator==(sequence_number, sequence_number) noexcept = default;
  friend constexpr std::strong_ordering operator<=>(sequence_number a, sequence_number b) noexcept {
    return static_cast<std::int32_t>(a.value - b.value) <=> 0;
  }
};

/// The number before the first one of each array and section. Tests let the numbers begin shortly
/// before they are at 0 again; no array may be there when this changes.
extern constinit sequence_number before_first;

}  // namespace orrery::detail
