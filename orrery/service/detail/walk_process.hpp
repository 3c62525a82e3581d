// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/spawn.hpp>
#include <orrery/service/detail/packing.hpp>

#include <cstdint>
#include <span>

namespace orrery::service {

class walk_gate;

/// The head of a packed request that travels from process to process of a walking list.
struct walk_request {
  remote<walk_gate> gate;    ///< where it is answered
  std::uint64_t number = 0;  ///< at the gate
  std::uint64_t moment = 0;  ///< its place in the order of the head, if it came through that
  bool jumps = false;        ///< list processes may send it on through a shortcut
};

/// The knowledge of a process of a walking list of the next one. Keys are packed.
struct walk_link {
  address next;               ///< null: there is none
  bytes least;                ///< its least key
  std::uint64_t version = 0;  ///< of who says so; see walk_settings::version
};

/// A part of a list, from one process on.
struct walk_part {
  bytes items;
  /// All requests that had taken effect in it have lesser ones, all others greater ones.
  std::uint64_t version = 0;
};

/// A process of a walking list, as the others see it; see walk_node.
///
/// Calls go forward only: from a process to one behind it in the list, or to its manager.
class walk_process {
 public:
  walk_process() = default;
  walk_process(const walk_process&) = delete;
  walk_process& operator=(const walk_process&) = delete;
  virtual ~walk_process() = default;

  // --- from its predecessor ---

  /// A request that is for this process or one behind it.
  virtual void walk(const walk_request& r, std::span<const std::byte> request) = 0;
  /// The same as a synchronous send: returns when this process has taken it up, before it is
  /// executed.
  virtual void walk_in_step(const walk_request& r, std::span<const std::byte> request) = 0;
  /// Returns when all has been done that its predecessor sent before.
  virtual void acknowledge() = 0;
  /// It is in the list now: nothing that was sent to its successor before can arrive there behind
  /// what this process sends. The client of the insertion is told, if its item is here.
  virtual void join(const walk_request& insertion) = 0;
  /// Its least item is erased, and the client told. It is free if none is left. Says whom its
  /// predecessor now precedes.
  virtual walk_link erase_least(const walk_request& r) = 0;
  /// Takes the item in front of its own, if it has room, or always. Returns the version of that,
  /// which is above `version`; 0 if there was no room.
  virtual std::uint64_t take_least(std::span<const std::byte> item, bool always, std::uint64_t version) = 0;
  /// Its first item, packed.
  virtual bytes first_item() = 0;
  /// The number of items from here on. All processes up to the last one stand still until they are
  /// counted.
  virtual std::uint64_t count() = 0;
  /// At most `limit` items of an interval of keys from here on; these processes stand still until
  /// all are there. `version`: of the process before.
  virtual walk_part collect(std::uint64_t limit, std::span<const std::byte> interval, std::uint64_t version) = 0;

  // --- from gates and other processes ---

  /// Requests, `first` and those that follow it, through a shortcut or to the head. Their keys
  /// ascend, but at the head. Those for which the shortcut is stale go back to the gate.
  virtual void enter(const walk_request& first, std::uint32_t count, std::span<const std::byte> requests) = 0;

  // --- from its manager ---

  /// A free process gets its items and its successor.
  virtual void begin(const walk_link& next, std::span<const std::byte> items) = 0;

  // --- from itself ---

  /// Executes what walk_in_step() has left.
  virtual void go_on() = 0;
};
ORRERY_PROCESS(walk_process, walk, walk_in_step, acknowledge, join, erase_least, take_least, first_item, count, collect,
               enter, begin, go_on);

}  // namespace orrery::service
