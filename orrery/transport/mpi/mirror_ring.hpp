// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/transport/ring.hpp>
#include <orrery/transport/ring_memory.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>

namespace orrery::transport {

/// The receiver's end of a ring from a PE of another machine: a ring of this node that a PE reads
/// as any other.
///
/// The carrier copies bytes of the sender's ring to the same positions. A record may come in
/// pieces, and the payload of a block after its record. So the mirror shows its reader whole
/// records only, up to the first block that is not there.
///
/// Owned by the carrier, used under its lock; the reader has the ring itself. Invariants:
///   I1  released <= shown <= filled <= released + capacity - granule, as at the sender, which has
///       less credit than that.
///   I2  The size word at `shown` is 0 in the ring; `size_` holds the one that is to come there.
///   I3  `blocks_` holds the records with blocks that are not shown, in the order of their
///       positions.
class mirror_ring {
 public:
  mirror_ring(ring_header& header, std::uint64_t offset, std::uint32_t from, std::uint32_t to) noexcept
      : header_(&header), offset_(offset), capacity_(header.capacity), from_(from), to_(to) {}

  /// Bytes from the sender's ring, which moves on by `advance`; what is missing of that nobody
  /// reads. False if that cannot be.
  [[nodiscard]] bool fill(std::uint64_t position, std::span<const std::byte> bytes, std::uint64_t advance) noexcept;
  /// The same for a record whose block is on its way. It is shown after complete_block(position).
  [[nodiscard]] bool fill_block(std::uint64_t position, std::span<const std::byte> record);
  /// The block of the record at `position` is there, at `offset` of this node's memory, which the
  /// record is to say.
  void complete_block(std::uint64_t position, std::uint64_t offset) noexcept;
  /// Shows what is complete. True if there is something new; then the reader is to be woken. False
  /// is also what is damaged: sizes and fillers that cannot be, and records that name a block which
  /// did not come as one.
  [[nodiscard]] bool show() noexcept;
  [[nodiscard]] bool damaged() const noexcept { return damaged_; }

  /// The credit for the sender: the position, and stops | refused << 32.
  struct credit {
    std::uint64_t position = 0;
    std::uint64_t word = 0;
    bool operator==(const credit&) const = default;
  };
  [[nodiscard]] credit owed() const noexcept;
  /// It is enough to be said at once: a quarter of the ring, or a sign to hold back.
  [[nodiscard]] bool is_due(const credit& c) const noexcept {
    return c.word != said_.word || c.position - said_.position >= capacity_ / 4;
  }
  [[nodiscard]] bool is_news(const credit& c) const noexcept { return c != said_; }
  void has_said(const credit& c) noexcept { said_ = c; }

  /// At a look now and then: gives memory back if the ring is empty and idle.
  void reclaim() noexcept;

  [[nodiscard]] std::uint32_t from() const noexcept { return from_; }
  [[nodiscard]] std::uint32_t to() const noexcept { return to_; }
  [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }

 private:
  [[nodiscard]] std::byte* at(std::uint64_t position) const noexcept {
    return header_->data() + (position & (capacity_ - 1));
  }
  [[nodiscard]] std::atomic<std::uint32_t>& size_at(std::uint64_t position) const noexcept {
    return reinterpret_cast<wire::envelope*>(at(position))->size;
  }
  [[nodiscard]] const wire::envelope& record_at(std::uint64_t position) const noexcept {
    return *reinterpret_cast<const wire::envelope*>(at(position));
  }
  [[nodiscard]] bool is_in_place(std::uint64_t position, std::uint32_t size) const noexcept;
  [[nodiscard]] bool accepts(std::uint64_t position, std::uint64_t bytes, std::uint64_t advance) const noexcept;

  ring_header* header_;
  std::uint64_t offset_;
  std::uint64_t capacity_;
  std::uint64_t filled_ = 0;
  std::uint64_t shown_ = 0;
  std::uint32_t size_ = 0;
  std::uint32_t from_;
  std::uint32_t to_;
  struct pending {
    std::uint64_t position;
    bool complete;
  };
  std::deque<pending> blocks_;  // I3
  credit said_;
  ring_idleness idleness_;
  bool damaged_ = false;
};

}  // namespace orrery::transport
