// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/service/detail/packing.hpp>
#include <orrery/wire/address.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>

namespace orrery::service {

/// How many packed items these are.
template <class Key, class Value>
[[nodiscard]] std::uint32_t count_items(std::span<const std::byte> packed) {
  std::uint32_t n = 0;
  for (unpacker u(packed); !u.empty(); ++n) {
    u.skip<Key>();
    u.skip<Value>();
  }
  return n;
}

/// Snapshots that streams read in parts: copies of the items, packed.
///
/// Owned by the gate of a session; used by its process only.
template <class Key, class Value>
class kept_snapshots {
 public:
  void keep(const address& stream, bytes items) { all_.insert_or_assign(stream, kept{std::move(items), 0}); }
  void drop(const address& stream) { all_.erase(stream); }
  /// The next items, at most `limit`, behind one byte: whether there are more.
  [[nodiscard]] bytes read(const address& stream, std::uint32_t limit) {
    bytes part;
    const auto at = all_.find(stream);
    pack(part, std::uint8_t{0});
    if (at == all_.end()) return part;
    kept& k = at->second;
    const std::span<const std::byte> rest = std::span<const std::byte>(k.items).subspan(k.read);
    unpacker u(rest);
    for (std::uint32_t i = 0; i < limit && !u.empty(); ++i) {
      u.skip<Key>();
      u.skip<Value>();
    }
    part.insert(part.end(), rest.data(), u.position());
    k.read += static_cast<std::size_t>(u.position() - rest.data());
    if (u.empty()) {
      all_.erase(at);
    } else {
      part.front() = std::byte{1};
    }
    return part;
  }

 private:
  struct kept {
    bytes items;
    std::size_t read;
  };
  std::map<address, kept> all_;
};

}  // namespace orrery::service
