// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/detail/group_part.hpp>

#include <cstdint>
#include <cstring>
#include <exception>

namespace orrery::detail {

/// A broadcast at one part, until its last member is done. Owned by itself; in the part's list.
struct broadcast_base {
  struct message_payload {
    broadcast_base* of;
    std::uint64_t index;
  };
  // Answered for a message that a member did not live to execute.
  struct drop_sink : scheduler::sink {
    broadcast_base* of = nullptr;
  };

  group_part* part;
  broadcast_base* previous = nullptr;
  broadcast_base* next = nullptr;
  const scheduler::handler* method;  // of the broadcast
  const scheduler::handler* member_method;  // of the messages to the members
  std::uint64_t reply = 0;  // as in the delivery
  std::uint32_t source_pe = 0;
  bool remote = false;
  bool by_wire = false;  // the arguments have come in their wire form, and so is the answer to go
  bool forgives = false;  // members that are gone do not count as failed
  bool births = false;  // it constructs the members
  bool ends_part = false;
  wire::record_kind level = wire::record_kind::message;  // of the messages to the members
  std::uint32_t left = 0;  // members that are not done
  // to the part's mailbox: so senders are held back while members are behind
  std::uint32_t charged = 0;
  std::uint32_t failed = group_data::none;
  std::exception_ptr error;
  drop_sink dropped;
  scheduler::delivery kept;  // the message, while views look into it

  broadcast_base(group_part& p, const scheduler::handler& h, const scheduler::handler& member) noexcept;
  broadcast_base(const broadcast_base&) = delete;
  broadcast_base& operator=(const broadcast_base&) = delete;
  virtual ~broadcast_base();
  /// Runs the operation at one member. Throws what that throws. False: the member is done later,
  /// and says so by one_done.
  virtual bool run(pe& self, slot& s, std::size_t index) = 0;
  virtual void answer(pe& self) noexcept = 0;  // and end

  /// Sends the messages to the members. Does not park.
  void fan_out(pe& self, std::uint32_t argument_bytes, bool constructs) noexcept;
  void fail(std::size_t index, std::exception_ptr why) noexcept;
  void one_done(pe& self) noexcept;
  /// For a report, should members wait in a barrier for one that failed here.
  void note_failure() noexcept;
  /// Takes the messages that have not been executed out of the mailboxes.
  void forget_messages(pe& self) noexcept;
  /// Takes over a delivery whose payload is read in place.
  void keep(scheduler::delivery& d) noexcept;

  // The handler of the messages to members; what they carry is a message_payload.
  static void run_member(pe& self, slot& s, scheduler::delivery& d);
  static void move_payload(void* to, void* from) noexcept { std::memcpy(to, from, sizeof(message_payload)); }
};

/// The error of a message that only its own PE may send, and that another one has sent.
[[nodiscard]] std::exception_ptr message_of_another_pe();

/// The work of a broadcast's handler that does not depend on the operation: `make` takes the
/// arguments out of the delivery.
struct broadcast_kind {
  const scheduler::handler& method;
  broadcast_base* (*make)(group_part&, scheduler::delivery&);
  std::uint32_t argument_bytes;
  bool constructs;
};
void run_broadcast(pe& self, slot& s, scheduler::delivery& d, const broadcast_kind& kind);

}  // namespace orrery::detail
