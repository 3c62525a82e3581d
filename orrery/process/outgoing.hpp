// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/pe.hpp>

#include <cstddef>
#include <span>

namespace orrery::detail {

/// A serialized record on its way to another node: small ones are written straight into the ring, large ones into a payload
/// block of this node's segment that the receiver reads in place. Made and sent without parking in between.
class outgoing {
 public:
  /// Space for `bytes` of payload. May park. Throws node_lost, std::bad_alloc.
  outgoing(scheduler::pe& self, scheduler::channel& c, std::size_t bytes);
  outgoing(const outgoing&) = delete;
  outgoing& operator=(const outgoing&) = delete;
  /// Takes an unsent payload back.
  ~outgoing();

  /// What a payload of `bytes` takes of the channel's ring.
  [[nodiscard]] static std::uint32_t record_bytes(const scheduler::channel& c, std::size_t bytes) noexcept;

  /// Where the payload goes; aligned to 16 (ring) or 64 (block).
  [[nodiscard]] std::span<std::byte> payload() noexcept { return payload_; }
  void send(wire::record_kind kind, std::uint32_t slot, std::uint32_t generation, std::uint64_t handler,
            std::uint64_t reply);

 private:
  scheduler::pe& self_;
  scheduler::channel& channel_;
  wire::envelope* record_ = nullptr;
  std::uint32_t bytes_ = 0;
  std::uint64_t block_ = 0;
  bool in_block_ = false;
  std::span<std::byte> payload_;
};

}  // namespace orrery::detail
