// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/backlog.hpp>
#include <orrery/scheduler/slot.hpp>
#include <orrery/wire/address.hpp>
#include <orrery/wire/envelope.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstdint>

namespace orrery::scheduler {

struct fiber;
struct inbound;
class pe;
struct pe_settings;

/// A fiber that waits until a mailbox has room; on its stack.
struct room_wait {
  address at;
  std::uint32_t stop;  ///< of a process of another PE: the number of the stop sign
  std::uint64_t number;  ///< of waits of this kind on this PE
  bool over = false;  ///< it was woken
};

/// The part of a PE that makes senders wait for room in mailboxes.
///
/// Problem: who sends faster than a process works would fill the memory; but a PE must always empty
/// its rings, or one full mailbox would hold up the messages of all others. So a mailbox that is
/// over its limit takes what comes, and its PE sends a stop sign to the PE that it came from, whose
/// processes then wait before they send more to that process, until a sign says go; a sender on the
/// same PE just waits. A method that sends and sends without waiting for anything would not hear of
/// that, so it listens after each ring full of records. When limits are raised says backlog.hpp.
///
/// Owned by its PE, used on its thread. Invariants: (1) a slot has an entry in the side table iff
/// `has_extra`; (2) a PE that was sent a stop sign is in `stopped_pes` until it is sent the sign to
/// go on; (3) `nobody_stops_` iff no process of another PE is known to have asked this one to hold
/// back.
class flow_control {
 public:
  flow_control(pe& of, const pe_settings& settings);
  ~flow_control();
  flow_control(const flow_control&) = delete;
  flow_control& operator=(const flow_control&) = delete;

  // --- mailboxes of this PE ----------------------------------------------------------------------
  [[nodiscard]] bool over_limit(const slot& s) const noexcept { return s.charge > mailbox_limit_; }
  /// Over its limit, which may have been raised.
  [[nodiscard]] bool is_full(const slot& s) const noexcept;
  /// Where over_limit(s): parks the caller until the mailbox has room or the process has ended.
  /// False, at once, if the message is to be taken all the same: the caller is that process itself,
  /// or the limit was raised. Throws stopped.
  bool wait_for_room(slot& s);
  /// Tells a PE to send nothing to the process until its mailbox has room again, if it is full.
  void hold_back(slot& s, std::uint32_t source_pe);
  /// Something was taken out of the mailbox of a process with `has_extra`: if half of the limit is
  /// free, whoever waits is let go.
  void made_room_if_low(slot& s) {
    if (s.charge <= mailbox_limit_ / 2) made_room(s);
  }
  /// Lets go who waits for room in the mailbox, here and on other PEs. Here it is the oldest, which
  /// wakes the next when it has found some: to wake all at once, of whom most find the mailbox full
  /// again, would cost the square of their number.
  void let_senders_go(slot& s);
  /// The mailboxes beyond their limits.
  [[nodiscard]] backlog& excess() noexcept { return backlog_; }
  /// The limit of a mailbox, in units of charge_unit bytes.
  [[nodiscard]] std::uint32_t mailbox_limit() const noexcept { return mailbox_limit_; }

  /// The side table: null if the process has no entry.
  [[nodiscard]] slot_extra* extra_of(const slot& s) noexcept;
  slot_extra& make_extra(slot& s);
  /// The process ends: whoever waits for room in its mailbox finds that out.
  void drop_extra(slot& s) noexcept;

  // --- mailboxes of other PEs --------------------------------------------------------------------
  /// No process elsewhere has asked to hold back, and that was heard lately. `sent_bytes`: what
  /// this PE has sent in all.
  [[nodiscard]] bool nobody_stops(std::uint64_t sent_bytes) const noexcept {
    return nobody_stops_ && sent_bytes - sent_when_heard_ <= ring_bytes_;
  }
  /// See pe::wait_while_stopped and pe::is_stopped; where not nobody_stops().
  bool wait_while_stopped(address to);
  [[nodiscard]] bool is_stopped(address to) const;
  /// Lets others run, and looks at what has come from other PEs.
  void listen();
  /// The PE looks at what has come, when it has sent that much.
  void listens(std::uint64_t sent_bytes) noexcept { sent_when_heard_ = sent_bytes; }
  void receive_stop(const inbound& in, const wire::envelope& e);
  void receive_go(const inbound& in, const wire::envelope& e);
  /// Nothing is held back any more that is for PEs which are not reachable.
  void forget_unreachable();

  /// The runtime shuts down: wakes all who wait for room.
  void cancel_waits();

 private:
  struct tables;
  // Bytes sent since the PE last looked at what has come.
  [[nodiscard]] std::uint64_t unheard() const noexcept;
  [[nodiscard]] bool runs_for(const slot& s) const noexcept;
  void made_room(slot& s);
  void wake_sender(slot& s);
  /// Parks the running fiber, which is in a list of those that wait for room, until it is woken.
  void park_for_room(address at, std::uint32_t stop);

  std::uint64_t sent_when_heard_ = 0;
  std::uint64_t ring_bytes_;
  bool nobody_stops_ = true;  // `stopped` is empty
  pe& of_;
  std::uint32_t mailbox_limit_;
  std::uint32_t stops_ = 0;  // that this PE has asked for
  std::uint64_t room_waits_ = 0;
  const wire::unique_ptr<tables> tables_;
  backlog backlog_;
};

}  // namespace orrery::scheduler
