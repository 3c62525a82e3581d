// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/service/detail/shortcut_table.hpp>
#include <orrery/service/detail/walk_process.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>

namespace orrery::service {

class walk_manager;

/// A request that came by a synchronous send, until it is executed.
struct held_request {
  walk_request w;
  bytes packed;
};

/// The common state of the list processes of one PE that does not depend on types.
///
/// Owned by the manager of the PE. Its list processes and gates are on the same PE, so it is plain
/// memory, as the look-up table of the paper is (section 3.6); it costs a process one pointer.
/// State that few processes have at a time lies here, too.
struct walk_settings {
  remote<walk_manager> manager;
  std::uint32_t granularity = 1;  ///< items of a process (G)
  std::uint32_t forwards = 64;  ///< requests passed on between two synchronous sends (K)
  bool tunes_granularity = false;  ///< see walk_manager
  bool tunes_forwards = false;  ///< see sent_in_step
  std::chrono::nanoseconds search{};  ///< of a simulated world: what looking at one item takes
  std::chrono::nanoseconds quickest = std::chrono::nanoseconds::max();  ///< of synchronous sends
  std::uint64_t items = 0;
  std::uint64_t requests = 0;  ///< that its processes have had
  std::uint64_t jumps = 0;  ///< requests that they sent on through a shortcut
  std::uint64_t stale = 0;  ///< that came through a shortcut that was stale
  std::uint64_t refused = 0;  ///< sends for which a mailbox had no room, with K automatic
  std::uint64_t moments = 0;  ///< requests that the head has had, if it is here
  /// The version of the last request that took effect in a process of this PE. A process that gives
  /// keys to another one says its version, and the other one goes on above that: so requests for
  /// one key take effect in the order of their versions, wherever the key is (a clock of
  /// Lamport's).
  std::uint64_t version = 0;
  std::map<const walk_process*, held_request> held;  ///< at most one of each process

  /// A request that takes effect now has this version.
  std::uint64_t next_version(std::uint64_t above = 0) noexcept {
    see_version(above);
    return ++version;
  }
  void see_version(std::uint64_t of_another) noexcept { version = std::max(version, of_another); }
  /// A mailbox had no room: K is halved.
  void send_was_refused() noexcept {
    ++refused;
    forwards = forwards / 2 + 1;
  }
  /// A synchronous send took so long. With K automatic: one that took little more than the quickest
  /// shows that the receiver keeps up, and K grows by one; one that took eight times as long shows
  /// that it does not, and K is halved.
  void sent_in_step(std::chrono::nanoseconds took) noexcept {
    if (!tunes_forwards) return;
    if (took < quickest) quickest = took;
    if (took > 8 * quickest) {
      forwards = forwards / 2 + 1;
    } else if (forwards < most_forwards) {
      ++forwards;
    }
  }
  static constexpr std::uint32_t most_forwards = 4096;  ///< automatic
  static constexpr std::uint32_t most_counted = 0xffff;
};

/// The same with the shortcuts.
template <class Key>
struct walk_site : walk_settings {
  shortcut_table<Key> table;
};

}  // namespace orrery::service
