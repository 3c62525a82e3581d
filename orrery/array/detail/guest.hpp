// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/directory.hpp>

#include <cstdint>
#include <span>

// How a PE uses an array that it is not on.
//
// Problem: an array is on the PEs of the program that made it. Another program of the same world
// may hold its handle, but has no part of it: neither homes nor a place in the spanning tree. If it
// leaves, the array loses nothing.
//
// So a guest sends what it has to say to the PE that made the array, serialized. The other PE
// counts it and sends it on as its own; the answer goes straight to the guest. A message of a guest
// travels one hop more than others.
namespace orrery::detail {

/// The PE that made the array, to which guests turn.
[[nodiscard]] std::uint32_t maker_of(pe& self, std::uint32_t array) noexcept;
/// The array was made by another program, so that there can be no part of it here. False for a null
/// array.
[[nodiscard]] bool is_guest_of(pe& self, std::uint32_t array);
/// Throws usage_error: that cannot be done by a guest.
[[noreturn]] void throw_guest(std::uint32_t array, const char* what);

enum class guest_request : std::uint8_t {
  message,  ///< to an element
  creation,  ///< of an element at its home
  broadcast,  ///< the payload: its arguments
};

/// Before a request: throws unless this is a guest of that array, and node_lost if its maker is
/// gone. Parks while the way there is full; false, at once, if that must not be. Throws stopped.
[[nodiscard]] bool may_send_as_guest(pe& self, std::uint32_t array, bool may_wait);
/// Hands a request to the array's maker. Never parks and throws nothing.
void send_as_guest(pe& self, std::uint32_t array, guest_request what, const array_handler& h,
                   std::span<const std::byte> payload) noexcept;
/// Sends a broadcast to all elements, as a guest or not. Parks as array_core::broadcast does.
void broadcast_to(pe& self, std::uint32_t array, const array_handler& method, std::span<const std::byte> arguments);
/// On the PE that made the array. Throws node_lost if a part of it is lost, process_gone.
void require_whole_array(std::uint32_t array);
/// Grows when a node of the array's program is leaving, and when it has ended: calls of guests that
/// were made before end then.
[[nodiscard]] std::uint32_t lost_nodes_of(pe& self, std::uint32_t array);

}  // namespace orrery::detail
