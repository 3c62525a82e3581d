// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/handler.hpp>
#include <orrery/scheduler/message.hpp>
#include <orrery/wire/envelope.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>

namespace orrery::scheduler {

class pe;
struct inbound;
struct slot;

/// A message on its way into a handler.
struct delivery {
  pe* self = nullptr;
  message* heap = nullptr;  ///< it lies in a message, or
  inbound* from = nullptr;  ///< it lies at the front of this ring, or (both null) nowhere any more
  const handler* method = nullptr;
  std::byte* payload = nullptr;
  std::size_t payload_bytes = 0;
  std::uint64_t reply = 0;
  /// Offset of the payload block in the sender's segment, for form::block.
  std::uint64_t block = 0;
  std::uint32_t source_pe = 0;
  wire::payload_form form = wire::payload_form::wire;
  bool remote = false;  ///< from another node

  /// Describes a message of a mailbox of `at`.
  void load(pe& at, message& m) noexcept {
    self = &at;
    heap = &m;
    method = reinterpret_cast<const handler*>(m.head.handler);
    payload = m.payload();
    payload_bytes = m.head.payload_bytes();
    reply = m.head.reply;
    source_pe = m.source_pe;
    form = m.head.form;
    remote = form == wire::payload_form::wire || form == wire::payload_form::block;
    if (form == wire::payload_form::block) [[unlikely]]
      find_block();
  }
  /// The payload is a reference to a block: it is the block from now on; null if that is not in its
  /// sender's memory.
  void find_block() noexcept;

  /// Gives the message's memory back. The payload must have been moved out.
  inline void release() noexcept;
  void release_other() noexcept;
  /// Gives back a message of a mailbox of `at` that nobody executes: its memory, and its block if
  /// its payload lies in one. Its arguments must have been moved out, or dropped.
  static inline void give_back(pe& at, message& m) noexcept;
  /// Gives back the record in the ring, but keeps a payload that lies in a block. For who reads it
  /// in place and may park.
  void leave_ring() noexcept;
  /// Disposes of a message that cannot be executed: tells the caller, or the error handler.
  void fail(std::exception_ptr why) noexcept;

  /// Moves a message that is being routed (handler::route) out of its ring, if it lies in one. It
  /// is the caller's then.
  [[nodiscard]] message* detach(const wire::envelope& e, std::uint32_t bytes) {
    message* const m = heap != nullptr ? heap : to_message(e, bytes);
    heap = nullptr;
    form = wire::payload_form::refs;  // nothing is left here that could be given back twice
    return m;
  }
  /// A message that lies in a ring, for the mailbox of `into`. A payload in a block is copied where
  /// that mailbox holds much.
  [[nodiscard]] message* to_message(const wire::envelope& e, std::uint32_t bytes, const slot* into = nullptr);

 private:
  message* copy_block(const wire::envelope& e);
};

}  // namespace orrery::scheduler
