// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/wire/address.hpp>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace orrery::scheduler {

class pe;
struct slot;

/// Counts the messages in the mailboxes of a PE, and those beyond the limits.
///
/// Problem: a full mailbox makes its senders wait. Some of them would wait for ever: those that
/// wait for each other in a circle, and those whose receiver waits for something that comes after
/// them. A limit must slow senders down, and must not lose a message. So the limit of such a
/// mailbox is raised: when a probe has gone round a circle (deadlock_detector.cpp), when the
/// receiver waits in `receive` for another message, and when nothing else can happen in the world
/// (quiescence_detector.cpp). Where none of these is seen, the limit of a mailbox rises slowly
/// while its process waits and takes nothing. Messages of a process to itself are always taken.
/// Nothing but memory bounds that, so the mailboxes of a node have a limit together. A node that
/// exceeds it reports who sends to whom, and ends.
///
/// Owned by its PE; used by that PE's thread, except for `bytes`. Invariants: (1) a mailbox that
/// holds senders back is in `holding_`; (2) a raised limit lasts until the mailbox is half as full
/// as the usual one.
class backlog {
 public:
  explicit backlog(pe& of) noexcept : of_(of) {}
  backlog(const backlog&) = delete;
  backlog& operator=(const backlog&) = delete;

  /// The mailbox is going to hold its first sender back.
  void begin_to_hold(slot& s);
  /// Somebody here waits for room, or was told to.
  [[nodiscard]] bool holds_senders();
  /// Lets senders go on: raises the limit of the mailbox if it is full.
  void raise(slot& s);
  /// The same for all mailboxes that hold senders back.
  void raise_all();
  /// The mailbox takes a message over its limit.
  void took_more(slot& s);

  /// Adds up what is in the mailboxes, not more often than is cheap; ends the program if the node
  /// holds too much.
  void measure_if_due();
  /// Adds it up now, for the counters.
  void measure();
  /// A mailbox may hold senders back: relieve() is to be called now and then.
  [[nodiscard]] bool may_hold() const noexcept { return !holding_.empty(); }
  /// Lets some senders go on of mailboxes that have been full for long, without anything being
  /// taken out. Called by the loop.
  void relieve(std::int64_t now_ns);
  static constexpr std::int64_t relieve_after_ns = 250'000'000;
  /// The bytes in the mailboxes when they were last measured. Called by any thread.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

 private:
  void raise(slot& s, std::uint32_t growth);
  void check_node();
  [[noreturn]] void end_program(std::uint64_t all);
  [[nodiscard]] std::string largest_flows() const;

  pe& of_;
  std::vector<address> holding_;  // and some that do not any more
  std::int64_t due_ns_ = 0;
  std::atomic<std::uint64_t> bytes_{0};
};

}  // namespace orrery::scheduler
