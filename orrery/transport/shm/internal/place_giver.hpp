// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/transport/shm/internal/table.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace orrery::transport {

// Gives out places in the tables of a world, to nodes and to their PEs.
//
// Problem: programs join a world and leave it for as long as it lasts, and its tables are of fixed
// size. A place of a node that has ended can be given to another one only when nobody touches what
// lies there in the name of the old one: a PE may be just about to publish a ring to a PE whose
// node ends, or to take one from there.
//
// So each PE of a node that is there, and each node's monitor, says how many nodes it knows to be
// gone (`noticed`); it says so when it has let go of what was theirs. A place that has ended is
// free when all have noticed that. A node takes places in a row, those that were used least; tables
// grow only when no row is free. Numbers of a new node are of an epoch that none of its places had
// before.
//
// A value on the stack of who joins. One node of the world at a time gives out places: who holds
// the door of a named world, or who makes the world.
//
// Invariants
//   I1  Whoever is killed in the middle leaves places that are `claimed`, which the next one takes.
//   I2  An entry is written before its state says so, and a place is free of what was there before
//       it has a new number.
class place_giver {
 public:
  struct given {
    std::uint32_t node;  ///< of who joins; nodes that it will launch have the numbers after it
    std::uint32_t first_pe;
  };

  place_giver(const world_table& table, const segment& memory) noexcept : table_(table), memory_(memory) {}

  /// For `config.nodes` nodes with `config.pe_count` PEs each; the first is for `self`, whose entry
  /// becomes `joining`, the others are `reserved` for it. Fails with `full` if there are no places.
  [[nodiscard]] result<given> give(const world_config& config, std::uint32_t vocabulary_place, peer_id self);
  /// After give() has failed: there would have been places, but for PEs that have not noticed yet
  /// who is gone.
  [[nodiscard]] bool may_succeed_later() const noexcept { return !holding_.empty(); }

 private:
  struct place {
    bool is_free = false;
    bool is_held = false;  // free when all have noticed
    std::uint32_t epoch = 0;  // that a new number there would have at least
  };
  struct run {
    std::uint32_t first;
    std::uint32_t epoch;
  };

  void end_those_that_died_joining() const;
  [[nodiscard]] std::uint64_t noticed_by_all();
  [[nodiscard]] std::vector<place> look_at_nodes();
  [[nodiscard]] std::vector<place> look_at_pes(const std::vector<place>& nodes) const;
  [[nodiscard]] std::optional<run> find_run(const std::vector<place>& places, std::uint64_t count) const;
  [[nodiscard]] result<void> back(handed_out before, handed_out after) const;
  void claim(std::uint32_t node) const noexcept;
  void clear_pe(std::uint32_t pe, std::uint32_t node) const noexcept;
  [[nodiscard]] std::string holding_text() const;

  const world_table& table_;
  const segment& memory_;
  std::vector<std::uint32_t> holding_;  // nodes that have not noticed all that are gone
};

}  // namespace orrery::transport
