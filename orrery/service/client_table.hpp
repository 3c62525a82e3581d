// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/service/presence.hpp>

#include <cstdint>
#include <map>
#include <utility>

namespace orrery::service {

/// The clients that are there, and what a process of a service keeps for each of them.
///
/// Problem: what is kept for a client must be given up when the client ends, in whatever way; and a
/// client that was taken for dead must not be mistaken for one that is there.
///
/// A client is known by a number that is never used again, and is in the table until its presence
/// ends.
///
/// Owned by a process of the service; used by its methods only.
template <class Kept>
class client_table {
 public:
  /// A client begins; returns its number. `gone(number)` is called as a process of its own when the
  /// presence has ended.
  template <class F>
  std::uint32_t begin(remote<presence> client, F gone) {
    const std::uint32_t number = next_++;
    kept_[number];
    when_gone(client, [number, gone = std::move(gone)] { gone(number); });
    return number;
  }
  /// Whether the client is there.
  [[nodiscard]] bool contains(std::uint32_t number) const { return kept_.contains(number); }
  /// The entry of a client that is there.
  [[nodiscard]] Kept& operator[](std::uint32_t number) { return kept_.at(number); }
  /// The client leaves the table; returns what was kept for it, nothing if it was not there.
  Kept end(std::uint32_t number) {
    auto node = kept_.extract(number);
    return node ? std::move(node.mapped()) : Kept{};
  }

 private:
  std::map<std::uint32_t, Kept> kept_;
  std::uint32_t next_ = 0;
};

}  // namespace orrery::service
