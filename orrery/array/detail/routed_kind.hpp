// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/directory.hpp>
#include <orrery/array/early.hpp>

namespace orrery::detail {

/// The head before the index in a message that finds its element by it.
struct route_head {
  std::uint64_t number = 0;  ///< of the sending part; 0: it did not come through a table
  std::uint64_t call = 0;  ///< entry in the sender's table of calls; 0: one way
  std::uint32_t origin = 0;  ///< the sender's PE
  std::uint16_t hops = 0;
  std::uint16_t flags = 0;
  static constexpr std::uint16_t wants_location = 1;
  /// Others wait for the answer, which comes also if there is no element.
  static constexpr std::uint16_t asks = 2;
  static constexpr std::uint16_t asked = 4;  ///< a home that may know has been asked
  /// An element was to be created for it, and could not be.
  static constexpr std::uint16_t tried = 8;
  static constexpr std::uint16_t to_home =
      16;  ///< it has followed its element for too long, and is to wait at the home
  /// It has waited there, and others wait until it is executed.
  static constexpr std::uint16_t from_home = 32;
  /// From here on: moves in which its element has taken it along.
  static constexpr std::uint16_t one_move = 256;

  [[nodiscard]] unsigned moves() const noexcept { return flags / one_move; }
  [[nodiscard]] unsigned follows() const noexcept { return hops + moves(); }
  void take_along() noexcept {
    constexpr unsigned most = 255;
    if (moves() < most) flags = static_cast<std::uint16_t>(flags + one_move);
    if ((flags & from_home) != 0) flags |= to_home;
  }
};
static_assert(sizeof(route_head) == 24 && wire_size<route_head>() == 24);

/// The properties of a message that its way depends on, beside the types of element and index.
///
/// Each method of an element has messages of its own, but they all go the same way. So the way is
/// compiled once for each class of elements, and asks here. One static object for each kind of
/// message; its handler refers to it.
struct routed_kind {
  early policy = early::refuse;  ///< where there is no element
  bool counts = false;  ///< as something that the array has to do; false: it follows others that do
  bool closes = false;  ///< the last one of a stream
  bool may_miss = false;  ///< nobody has to hear that there is no element any more
  bool waits_at_home = false;  ///< if its element keeps moving
  /// Makes an element, where the policy asks for that.
  const scheduler::handler* creation = nullptr;
  /// Writes an owned payload as it travels between nodes. Throws what serialize() throws.
  bytes (*to_wire)(const std::byte* payload) = nullptr;
  /// In the place of a message that to_wire could not write, one that does nothing.
  void (*send_nothing)(array_core&, const std::byte* payload, std::uint32_t to) = nullptr;
};

/// The kind of what follows messages as they go: nobody misses it.
inline constexpr routed_kind following_kind{};
/// The same of what says that those before it have arrived.
inline constexpr routed_kind probing_kind{.waits_at_home = true};

/// Sends a message that has a route_head on to another PE.
void send_on(array_core& part, const routed_kind& kind, scheduler::delivery& d, const wire::envelope& e,
             std::uint32_t size, std::uint32_t to);
/// It does not find its element, and is over: who waits for its answer is told.
void fail_routed(array_core& part, const routed_kind& kind, scheduler::delivery& d, const route_head& h,
                 std::exception_ptr why);
/// The same of one that is not counted any more. `method`: its handler.
void reject_routed(pe& self, const scheduler::handler& method, const routed_kind& kind, scheduler::delivery& d,
                   const route_head& h, std::exception_ptr why) noexcept;
/// A message in the mailbox of an element that has ended, or moves on: it goes on its way again.
void forward_routed(array_core& core, cell_base&, scheduler::message* m);

}  // namespace orrery::detail
