// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/placement.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

namespace orrery {

/// Where the members of a group are to live: places that are used in turn (rank i at place i mod
/// their number), or in blocks of consecutive ranks. A single placement is a list of one; `node(1)`
/// and the like choose anew for each member.
class placements {
 public:
  placements(placement one) : list_{one} {}  // NOLINT(google-explicit-constructor)
  placements(std::initializer_list<placement> l) : list_(l) {}
  placements(std::vector<placement> l) : list_(std::move(l)) {}  // NOLINT(google-explicit-constructor)
  placements(std::span<const placement> l) : list_(l.begin(), l.end()) {}  // NOLINT(google-explicit-constructor)

  /// The PE of each of n members, seen from the calling process. Throws usage_error (no such place,
  /// no place at all), node_lost.
  [[nodiscard]] std::vector<std::uint32_t> resolve(std::size_t n) const;

 private:
  friend placements everywhere();
  friend placements in_blocks(placements places);
  placements() = default;

  std::vector<placement> list_;  // empty: all PEs of the world
  bool all_ = false;
  bool blocks_ = false;
};

/// All PEs that are there, in turn, from the first on: neighbours by rank are on different PEs (a
/// cyclic distribution).
[[nodiscard]] placements everywhere();
/// The same places, but in blocks: with 64 members on 2 PEs ranks 0 to 31 are on the first.
/// Neighbours by rank are mostly on one PE.
[[nodiscard]] placements in_blocks(placements places = everywhere());

}  // namespace orrery
