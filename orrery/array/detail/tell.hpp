// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/detail/send.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

// How the parts of an array on different PEs send each other messages.
namespace orrery::detail {

/// Counts a message to an element that goes to another PE; `first`: it leaves the PE where it was
/// sent.
inline void note_hop(pe& self, bool first) noexcept {
  scheduler::counters& n = self.count();
  ++n.hops;
  if (first) ++n.routed;
}
/// Sends a serialized message to a PE, from anywhere: never parks and throws nothing. Such
/// messages, and all others to that PE, arrive in the order sent; those too large for a ring travel
/// in pieces. `slot` and `generation` are the handler's to use. Messages for a lost node are
/// dropped. `level`: the kind of its record, where it is for an element.
void tell(pe& self, std::uint32_t to, const scheduler::handler& h, std::uint32_t slot, std::uint32_t generation,
          std::span<const std::byte> payload, wire::record_kind level = wire::record_kind::message) noexcept;
/// Sends a serialized message to a process of another PE, in pieces where it is too large for a
/// ring. Never parks. Throws node_lost, world_error.
void tell_process(pe& self, address to, const scheduler::handler& h, std::span<const std::byte> payload);
/// A message of the PE's own memory with a serialized payload.
[[nodiscard]] scheduler::message* wire_message(pe& self, const scheduler::handler& h, std::uint32_t slot,
                                               std::uint32_t generation, std::span<const std::byte> payload);
/// Routes a message that this PE has in its memory, and puts it into the mailbox of its element.
void dispatch(pe& self, scheduler::message* m);
/// usage_error: a message of so many bytes in its wire form.
[[noreturn]] void throw_too_large(const scheduler::handler& h, std::size_t bytes);
/// Gives back a message that will not be executed.
void discard(pe& self, scheduler::message* m) noexcept;

}  // namespace orrery::detail
