// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/index.hpp>

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>

// Squares of a quadtree: as coordinates, to find neighbours, and as the way from the root, two bits
// for each level, which is their index.

namespace heat_tree {

enum class side : std::uint8_t { west, east, north, south };
inline constexpr std::array<side, 4> sides{side::west, side::east, side::north, side::south};
[[nodiscard]] constexpr side opposite(side s) noexcept { return static_cast<side>(static_cast<std::uint8_t>(s) ^ 1); }
[[nodiscard]] constexpr std::size_t number(side s) noexcept { return static_cast<std::size_t>(s); }
[[nodiscard]] constexpr bool is_upright(side s) noexcept { return s == side::west || s == side::east; }

/// Square (x, y) of the 2^level x 2^level that the plate has on a level; y grows to the south.
struct place {
  std::uint32_t level = 0;
  std::uint32_t x = 0;
  std::uint32_t y = 0;
  friend auto operator<=>(const place&, const place&) = default;

  /// The square of the same size beside it. Not to be asked beyond the plate.
  [[nodiscard]] place beside(side s) const noexcept {
    place p = *this;
    if (s == side::west) --p.x;
    if (s == side::east) ++p.x;
    if (s == side::north) --p.y;
    if (s == side::south) ++p.y;
    return p;
  }
  [[nodiscard]] place parent() const noexcept { return {level - 1, x / 2, y / 2}; }
  /// The one of its four quarters with these lowest bits.
  [[nodiscard]] place child(std::uint32_t right, std::uint32_t below) const noexcept {
    return {level + 1, 2 * x + right, 2 * y + below};
  }
  /// The first (from north or west) or the second of the two quarters along a side.
  [[nodiscard]] place child_at(side s, std::uint32_t half) const noexcept {
    if (is_upright(s)) return child(s == side::east ? 1 : 0, half);
    return child(half, s == side::south ? 1 : 0);
  }
  /// Whether it is the first or the second of its parent's two along a side.
  [[nodiscard]] std::uint32_t half_at(side s) const noexcept { return (is_upright(s) ? y : x) & 1; }
  /// Whether its parent's side is also its own.
  [[nodiscard]] bool touches(side s) const noexcept { return parent().child_at(s, half_at(s)) == *this; }

  [[nodiscard]] orrery::bit_path path() const {
    orrery::bit_path p;
    for (std::uint32_t l = level; l-- > 0;) {
      p.push_back((y >> l & 1) != 0);
      p.push_back((x >> l & 1) != 0);
    }
    return p;
  }
  [[nodiscard]] static place of(const orrery::bit_path& p) {
    place at;
    for (std::size_t i = 0; i < p.size(); i += 2) at = at.child(p[i + 1] ? 1 : 0, p[i] ? 1 : 0);
    return at;
  }
};

}  // namespace heat_tree
