// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace orrery::detail {

/// The share of a PE's elements that belongs to one member of a team: share number `index` of
/// `count`, as so many members are on the PE.
struct team_share {
  std::uint32_t index = 0;
  std::uint32_t count = 1;
  std::span<const std::uint32_t> pes;  ///< with members; empty: there is no team
};

}  // namespace orrery::detail
