// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace orrery {

/// Names one process anywhere in the world.
///
/// A message has to find its process without asking anybody. So an address is the position of the
/// process itself: the PE that runs it and the slot in that PE's table, one array index away from
/// the object. Slots are used again when a process is destroyed; the generation counts how often,
/// so an old address never reaches the new tenant of its slot: the PE sees that the generations
/// differ and answers `process_gone`. PE numbers are never used again within one world.
///
/// An address is a plain value: copy it, compare it, keep it in a map, send it to another node. It
/// owns nothing and may outlive its process. The order (`<=>`) is by PE, slot, generation; it means
/// nothing but lets addresses be keys. Generation 0 is never given out: it marks the null address.
///
///     orrery::address a{.pe = 3, .slot = 17, .generation = 2};
///     to_string(a);                                     // "3.17#2"
struct address {
  std::uint32_t pe = 0;
  std::uint32_t slot = 0;
  std::uint32_t generation = 0;

  /// False for the null address, which names no process.
  [[nodiscard]] constexpr explicit operator bool() const noexcept { return generation != 0; }

  friend constexpr bool operator==(const address&, const address&) = default;
  friend constexpr auto operator<=>(const address&, const address&) = default;
};

/// How an address is written in errors, traces and logs: "3.17#2" is PE 3, slot 17, second tenant
/// of that slot (generation 2); "null" is the null address. Throws std::bad_alloc only.
[[nodiscard]] std::string to_string(const address& a);

}  // namespace orrery

/// Lets an address be the key of unordered containers.
template <>
struct std::hash<orrery::address> {
  [[nodiscard]] std::size_t operator()(const orrery::address& a) const noexcept {
    // The library's own hash over the object's bytes: an address has no padding.
    return std::hash<std::string_view>{}(std::string_view(reinterpret_cast<const char*>(&a), sizeof a));
  }
};

static_assert(sizeof(orrery::address) == 12, "std::hash<orrery::address> reads the bytes");
