// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/service/range_process.hpp>

#include <cstdint>
#include <span>

namespace orrery::service {

/// The questions of a service's balancing to a range.
struct range_load {
  address at = {};
  address successor = {};  ///< null: there is none
  bool active = false;  ///< it owns keys
  bool first = false;
  std::uint64_t items = 0;
  std::uint64_t requests = 0;  ///< since it was made
  std::uint64_t busy_ns = 0;   ///< the same
  std::uint32_t client_pe = 0;  ///< from where most of its batches come ...
  std::uint32_t client_votes = 0;  ///< ... as sure as load_meter is; 0 if not
};

/// The items that a range gives away, or takes.
struct range_content {
  bytes keys;  ///< owned_keys
  address successor = {};
  std::uint64_t count = 0;
  bytes items;
};

/// A range of a chain that covers all keys, as the ranges before it, and the balancing of the
/// service, see it.
///
/// The intervals of ranges follow each other, and each range knows its successor. A range whose
/// answer depends on what follows it calls its successor, and waits with its own keys at rest. So
/// the whole answer is true at one moment.
///
/// Only its predecessor lets a range go (give_up, end_give_up), or move (hand_over): it waits
/// meanwhile, and knows its new successor at once. A range without keys waits for nobody, and may
/// be given others (begin). So waits go forward only, and no circle comes about. The first range
/// has no predecessor, and moves by itself.
class chained_range : public range_process {
 public:
  /// The least item here or in the ranges that follow; no bytes if there is none.
  virtual bytes first_item() = 0;
  /// The greatest item here or in the ranges that follow; no bytes if there is none.
  virtual bytes last_item() = 0;
  /// The number of items here and in the ranges that follow.
  virtual std::uint64_t count_from_here() = 0;
  /// The parts of snapshot() and pin() of the ranges that follow, without a list_answer.
  virtual bytes snapshot_from_here(std::span<const std::byte> to) = 0;
  /// The same of pin().
  virtual bytes pin_from_here(remote<presence> stream, std::span<const std::byte> to) = 0;

  /// Gives half of its keys to another range, if it has more than `items`.
  virtual void split(std::uint32_t items) = 0;
  /// Takes all keys of its successor, if that is `next`, and both have at most so many items.
  /// Whether it has.
  virtual bool merge_next(const address& next, std::uint32_t items) = 0;
  /// Lets its successor, if that is `next`, move to another PE. Whether it has.
  virtual bool move_next(const address& next, std::uint32_t to_pe) = 0;
  /// The first range moves to another PE.
  virtual bool move_first(std::uint32_t to_pe) = 0;

  /// A range without keys takes these.
  virtual void begin(const range_content& content, std::uint32_t limit) = 0;
  /// Gives all to its predecessor, which owns keys of this version, if it has at most so many
  /// items; if not, the content has no keys. It keeps a copy until end_give_up.
  virtual range_content give_up(const address& to, std::uint64_t version, std::uint64_t items) = 0;
  /// Its predecessor has what it gave, and it lets go of that; or its predecessor could not take
  /// it, and it goes on: with these keys, of a new version (no bytes: it had given nothing).
  virtual bytes end_give_up(bool taken) = 0;
  /// Moves to another PE; returns who has its keys now: itself if it could not.
  virtual address hand_over(std::uint32_t to_pe) = 0;
  /// The requests that it has executed since it was asked last, for balance().
  virtual range_load load() = 0;
};
ORRERY_PROCESS(chained_range, first_item, last_item, count_from_here, snapshot_from_here, pin_from_here, split,
               merge_next, move_next, move_first, begin, give_up, end_give_up, hand_over, load);

}  // namespace orrery::service
