// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/service/detail/packing.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace orrery::service {

/// Keys from `from` (`above`: greater than it) to before `to`; none means no bound.
template <class Key>
struct key_interval {
  std::optional<Key> from = {};
  bool above = false;
  std::optional<Key> to = {};

  [[nodiscard]] bool ends_behind(const Key& k) const { return !to || k < *to; }
  /// The first place of it in a map that has lower_bound() and begin().
  template <class Items>
  [[nodiscard]] auto begin_in(const Items& items) const {
    return from ? items.lower_bound(*from, above) : items.begin();
  }
  [[nodiscard]] bytes packed() const {
    bytes b;
    pack(b, static_cast<std::uint8_t>(from ? 1 : 0));
    if (from) pack(b, *from);
    pack(b, static_cast<std::uint8_t>(above ? 1 : 0));
    pack(b, static_cast<std::uint8_t>(to ? 1 : 0));
    if (to) pack(b, *to);
    return b;
  }
  /// Throws bad_message.
  [[nodiscard]] static key_interval unpack(std::span<const std::byte> packed) {
    unpacker u(packed);
    key_interval i;
    if (u.take<std::uint8_t>() != 0) i.from = u.take<Key>();
    i.above = u.take<std::uint8_t>() != 0;
    if (u.take<std::uint8_t>() != 0) i.to = u.take<Key>();
    return i;
  }
};

}  // namespace orrery::service
