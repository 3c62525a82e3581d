// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace orrery::transport {

// Numbers of nodes and PEs in a world whose nodes share memory.
//
// A number names one node, or one PE, for ever. It is a *place*, where the shared tables have what
// belongs to it, and an *epoch*, which tells those apart that had the place one after the other. So
// programs can join for as long as the world lasts: places are used again, numbers are not. A name
// of a node or a PE holds the number; a look into a table goes by the place, and makes sure that
// the place is still that number's.

/// Places of nodes in one world, and places of PEs.
inline constexpr std::uint32_t max_places = 4096;
inline constexpr std::uint32_t max_nodes = max_places;
inline constexpr std::uint32_t max_pes = max_places;
/// The last epoch of a place. No number is 0xffffffff, which means "none".
inline constexpr std::uint32_t max_epoch = 0xffff'ffff / max_places - 1;

[[nodiscard]] constexpr std::uint32_t place_of(std::uint32_t number) noexcept { return number % max_places; }
[[nodiscard]] constexpr std::uint32_t epoch_of(std::uint32_t number) noexcept { return number / max_places; }
[[nodiscard]] constexpr std::uint32_t number_of(std::uint32_t place, std::uint32_t epoch) noexcept {
  return place + max_places * epoch;
}

}  // namespace orrery::transport
