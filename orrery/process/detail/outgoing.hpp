// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/pe.hpp>

#include <cstddef>
#include <span>

namespace orrery::detail {

/// A serialized record on its way to another node: small ones are written straight into the ring,
/// large ones into a payload block of this node's segment that the receiver reads in place. Made
/// and sent without parking in between.
///
/// A waiting caller is registered last, when nothing can park or throw any more: a sink that is
/// registered belongs to the table of pending calls, which completes it when the node is lost.
class outgoing {
 public:
  /// Space for `bytes` of payload. May park, unless `may_wait` is false: then has_room() says if
  /// there is space, and with it send_message does not park either. Throws node_lost,
  /// std::bad_alloc.
  outgoing(scheduler::pe& self, scheduler::outbound& c, std::size_t bytes, bool may_wait = true);
  outgoing(const outgoing&) = delete;
  outgoing& operator=(const outgoing&) = delete;
  /// Takes an unsent payload back.
  ~outgoing();

  /// The space that a payload of `bytes` takes in the ring.
  [[nodiscard]] static std::uint32_t record_bytes(const scheduler::outbound& c, std::size_t bytes) noexcept;

  [[nodiscard]] bool has_room() const noexcept { return payload_.data() != nullptr; }
  /// Where the payload goes; aligned to 16 (ring) or 64 (block).
  [[nodiscard]] std::span<std::byte> payload() noexcept { return payload_; }
  /// Sends a message, whose answer completes `sink` if that is not null. May park. Throws
  /// node_lost, stopped, world_error; then nothing was sent, and `sink` is registered nowhere.
  void send_message(address to, const scheduler::handler& h, scheduler::sink* sink,
                    wire::record_kind level = wire::record_kind::message);
  /// Sends the answer to a call. May park. Throws node_lost, stopped.
  void send_reply(std::uint64_t reply);

 private:
  void take_at_once(std::size_t bytes);
  void await_block(std::size_t bytes);
  // Room in the ring; nothing parks between this and `commit`.
  void reserve_record();
  void commit(wire::record_kind kind, std::uint32_t slot, std::uint32_t generation, std::uint64_t handler,
              std::uint64_t reply) noexcept;

  scheduler::pe& self_;
  scheduler::outbound& outbound_;
  wire::envelope* record_ = nullptr;
  std::uint32_t bytes_ = 0;
  std::uint64_t block_ = 0;
  bool in_block_ = false;
  std::span<std::byte> payload_;
};

}  // namespace orrery::detail
