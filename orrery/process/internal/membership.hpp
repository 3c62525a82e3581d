// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace orrery::scheduler {
class node;
}  // namespace orrery::scheduler

namespace orrery::detail {

inline constexpr std::uint32_t no_pe = 0xffff'ffff;

/// The PEs of a node that is alive. Travels.
struct member {
  std::uint32_t first_pe = 0;
  std::uint32_t pe_count = 0;

  friend bool operator==(const member&, const member&) = default;
};

/// Which nodes are alive, as a node has seen it at one time. A value that does not change.
///
/// Problem: nodes learn of changes at different times, and have to know whether they mean the same
/// world when they talk about who is responsible for what. The epoch of the world cannot say it: it
/// follows the change. So a membership has an `id`, a hash of what was seen of the last node at
/// each place (its number, and whether it is not yet alive, alive, or gone). A node goes through
/// these once and its number is never used again; therefore what one node sees never comes back,
/// and equal ids mean an equal view.
struct world_membership {
  std::uint64_t id = 0;
  std::uint32_t epoch = 0;             ///< of the world, read before the states
  std::vector<member> members;         ///< alive, in the order of their PEs
  /// Those of them that keep the names of the world: the nodes of the program that made it. So
  /// programs that join it, stop and leave move no names. All, if none of those is left.
  std::vector<member> keepers;
  std::vector<std::uint64_t> states;   ///< of the last node at each place, as far as one was alive
  bool self_alive = true;              ///< this node is one of them

  /// The member that the PE belongs to, as an index; members.size() if it is alive no more.
  [[nodiscard]] std::size_t member_of(std::uint32_t pe) const noexcept;
};
using membership_ptr = std::shared_ptr<const world_membership>;

/// The view that nodes share which see the same: those of a simulation, whose epoch says when there
/// is something new.
struct membership_cache {
  membership_ptr last;
};

/// The world as it is now; `before` is returned if nothing has changed since.
[[nodiscard]] membership_ptr read_membership(const scheduler::node& self, membership_ptr before);
/// False if the world has changed since, as far as its epoch tells. One load.
[[nodiscard]] bool seems_current(const scheduler::node& self, const world_membership& m) noexcept;

/// The hash of a name.
[[nodiscard]] std::uint64_t hash_of(std::string_view name) noexcept;
struct name_hash {
  using is_transparent = void;
  [[nodiscard]] std::size_t operator()(std::string_view name) const noexcept { return hash_of(name); }
};

/// The PE that a hash belongs to: each PE draws a number from the hash and its own number, and the
/// highest wins (rendezvous hashing: Thaler and Ravishankar 1998). So each has an equal share, and
/// a PE that comes or goes moves only what it has. Costs a few nanoseconds for each PE. no_pe if
/// there are none.
[[nodiscard]] std::uint32_t owner_of(std::uint64_t hash, std::span<const member> members) noexcept;

}  // namespace orrery::detail
