// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/transport/mpi/frame.hpp>
#include <orrery/transport/ring.hpp>
#include <orrery/transport/ring_memory.hpp>

#include <cstdint>

namespace orrery::transport {

/// The sender's end of a ring to a PE of another machine, as its carrier sees it.
///
/// A PE writes into such a ring as into any other. The carrier reads what was published behind what
/// it has taken already, and puts it into frames; the PE gets the space back when the receiver's
/// credit comes.
///
/// Owned by the carrier, used under its lock. Invariant: released <= taken <= what the PE has
/// published.
class outgoing_ring {
 public:
  outgoing_ring(ring_header& header, std::uint64_t offset, std::uint32_t from, std::uint32_t to) noexcept
      : header_(&header), offset_(offset), capacity_(header.capacity), from_(from), to_(to) {}

  /// A payload that lies in memory beside the ring.
  struct block {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    std::uint64_t tag = 0;  ///< under which the receiver will look for it
  };
  /// The work of the carrier while records are taken.
  class user {
   public:
    virtual ~user() = default;
    /// A block begins its way. The tag of the messages that bring it.
    virtual std::uint64_t send_block(std::uint64_t offset, std::uint64_t bytes) = 0;
    /// A PE of this node has read a block that lies at `offset` here. Where it lies at its sender.
    virtual std::uint64_t release_block(std::uint64_t offset) = 0;
  };

  /// Something was published that is not in a frame yet.
  [[nodiscard]] bool has_more() const noexcept;
  /// Puts as much as fits into the frame.
  void take(frame& into, user& by);
  /// The receiver has released its ring up to there. False if that cannot be. True: the PE may wait
  /// for it.
  [[nodiscard]] bool give_back(std::uint64_t position, std::uint64_t word) noexcept;
  /// The PE has asked to be woken when there is room.
  [[nodiscard]] bool is_waited_for() const noexcept {
    return header_->producer_waits.load(std::memory_order_relaxed) != 0;
  }

  /// At a look now and then: the ring is empty and idle, so that its PE may reclaim() it.
  [[nodiscard]] bool is_idle() noexcept { return is_reclaimable_ = idleness_.look(taken_, capacity_, is_empty()); }
  /// Gives its memory back if the last look said so. On the thread of its PE, which writes nothing
  /// meanwhile.
  void reclaim() noexcept;

  [[nodiscard]] std::uint32_t from() const noexcept { return from_; }
  [[nodiscard]] std::uint32_t to() const noexcept { return to_; }
  [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }

 private:
  [[nodiscard]] wire::envelope& at(std::uint64_t position) const noexcept {
    return *reinterpret_cast<wire::envelope*>(header_->data() + (position & (capacity_ - 1)));
  }
  [[nodiscard]] bool is_empty() const noexcept {
    return !has_more() &&
           // give_back() writes it, under the lock
           header_->head.load(std::memory_order_relaxed) == taken_;
  }
  [[nodiscard]] std::uint32_t published_at(std::uint64_t position) const noexcept;
  [[nodiscard]] bool take_block(frame& into, user& by);
  [[nodiscard]] bool take_records(frame& into, user& by);

  ring_header* header_;
  std::uint64_t offset_;
  std::uint64_t capacity_;
  std::uint64_t taken_ = 0;
  std::uint32_t rest_ = 0;  // bytes of the record at `taken_` that are not in a frame yet
  std::uint32_t from_;
  std::uint32_t to_;
  bool opened_ = false;
  bool is_reclaimable_ = false;
  ring_idleness idleness_;
};

}  // namespace orrery::transport
