// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/transport/error.hpp>
#include <orrery/transport/world.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace orrery::transport {

/// A world of several machines at one moment, for tools, which are no members of it.
struct cluster_status {
  struct node {
    std::uint32_t machine = 0;
    std::uint32_t state = 0;  ///< a node_state
    std::int32_t pid = 0;  ///< on its machine
    std::uint32_t first_pe = 0;
    std::int64_t now_ns = 0;  ///< what the clock of its machine showed
    std::string program;
    std::vector<std::uint64_t> counters;  ///< `counters_per_pe` words of each PE
    /// The names that it has published, as the layer above has written them; only if a tool has
    /// asked for names.
    std::vector<std::byte> names;
  };
  std::vector<std::string> hosts;  ///< of the machines, by number
  std::vector<node> nodes;  ///< by number
  std::string name;  ///< of the world, on this machine; empty: it has none
  std::uint32_t teller = 0;  ///< the node that says all this: the first one of this machine
  /// All nodes that are there have told their counters; else some are older.
  bool is_fresh = false;

  [[nodiscard]] std::vector<std::byte> encode() const;
  /// Fails with `damaged` if the bytes are not what encode() has made, or what they say cannot be.
  [[nodiscard]] static result<cluster_status> decode(std::span<const std::byte> bytes);
};

/// Asks the world whose memory on this machine has that nonce. Blocks for as long as `patience`.
/// Fails with `gone` if nobody answers in its name, with `timed_out`, and as decode.
[[nodiscard]] result<cluster_status> ask_for_status(std::uint64_t nonce, std::chrono::milliseconds patience,
                                                    bool names = false);

/// The known state of a world whose first node is in that state.
[[nodiscard]] world_state state_of_world(node_state first) noexcept;

/// The nonces of all worlds of several machines, of any user, whose nodes on this machine tell
/// tools of them. A world needs no name for that.
[[nodiscard]] std::vector<std::uint64_t> told_worlds();

}  // namespace orrery::transport
