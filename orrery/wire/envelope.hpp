// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace orrery::wire {

/// The request of an envelope to the PE that receives it.
enum class record_kind : std::uint8_t {
  skip = 0,     ///< nothing: fills the end of a ring that a record did not fit into
  message = 1,  ///< run a handler at a process (or, with `no_slot`, at the PE itself)
  reply = 2,    ///< the result of a call
  failure = 3,  ///< the exception that a call ended with
  stop = 4,     ///< flow control: hold back what goes to this process
  go = 5,       ///< flow control: the process has room again
  release = 6,  ///< a payload block was read and is its owner's again
  wait_probe = 7,  ///< deadlock detection: follow the chain of waits
  /// This node cannot read what yours sends, or it was nonsense, and treats it as lost.
  refusal = 8,
  unknown = 10,  ///< back to its sender: a message that the receiver's program has no handler for
  /// Belongs to the next record: what the sender knows of others' progress, where that is followed;
  /// see causality.
  annex = 11,
  /// A result of at most small_result bytes, in the envelope itself; inside a node only.
  small_reply = 9,
  urgent = 12,      ///< a message that goes before others, at its PE and in its mailbox
  background = 13,  ///< a message for when its PE has nothing else to do
};

/// A message of whatever level.
[[nodiscard]] constexpr bool is_message(record_kind k) noexcept {
  return k == record_kind::message || k == record_kind::urgent || k == record_kind::background;
}

/// The level of a message as another OS process has written it: one of the three.
[[nodiscard]] constexpr record_kind level_of(record_kind k) noexcept {
  return is_message(k) ? k : record_kind::message;
}

/// How the payload behind an envelope is laid out.
enum class payload_form : std::uint8_t {
  wire = 0,  ///< serialized bytes
  owned = 1,  ///< a typed tuple that the receiver takes over; inside a node only
  refs = 2,  ///< a tuple of references to the arguments of a caller that waits; inside a node only
  block = 3,  ///< serialized bytes in the sender's segment, named by a `block_ref`
};

/// Marks an envelope for the PE itself: a spawn or a remote function.
inline constexpr std::uint32_t no_slot = 0xffff'ffff;

/// A result of at most this many bytes fits into an envelope, in place of the words that name a
/// target.
inline constexpr std::size_t small_result = 16;

/// All records of a ring are multiples of this many bytes.
inline constexpr std::uint32_t granule = 32;

/// The head of every message, in a ring and in a mailbox. Only `size` is read before the record is
/// known to be complete. Inside a node `handler` and `reply` are pointers; between nodes `handler`
/// is an index of the handler table and `reply` names an entry of the caller's table of pending
/// calls.
struct envelope {
  std::atomic<std::uint32_t> size;  ///< of the whole record; 0: not published yet
  record_kind kind;
  payload_form form;
  /// Bytes at the end of the record that are not payload; or see `pages_beside`.
  std::uint16_t padding;
  std::uint32_t slot;  ///< of the target
  std::uint32_t generation;  ///< of the target
  std::uint64_t handler;
  std::uint64_t reply;  ///< 0: nobody waits for a result

  /// A field of an envelope that another OS process may write at any time: read once, then checked,
  /// then used.
  template <class T>
  [[nodiscard]] static T read_once(const T& field) noexcept {
    return *static_cast<const volatile T*>(&field);
  }
  [[nodiscard]] std::byte* payload() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
  [[nodiscard]] std::byte* result() noexcept { return reinterpret_cast<std::byte*>(this) + result_at; }
  static constexpr std::size_t result_at = 8;
  [[nodiscard]] std::uint32_t payload_bytes() const noexcept {
    return size.load(std::memory_order_relaxed) - granule - padding;
  }
};
static_assert(sizeof(envelope) == granule);
static_assert(offsetof(envelope, slot) == envelope::result_at &&
              offsetof(envelope, reply) == envelope::result_at + small_result);

/// Where a `form::block` payload lies: in the segment of the node that sent it.
struct block_ref {
  std::uint64_t offset;
  std::uint64_t bytes;
};

/// The unit that counts what an owned payload, or one in a block, holds beside its record, so that
/// queues are bounded in what they really hold. The number is in `padding`; such a payload has a
/// size that its receiver knows.
inline constexpr std::size_t page_bytes = 4096;
[[nodiscard]] constexpr std::uint16_t pages_beside(std::size_t bytes) noexcept {
  return static_cast<std::uint16_t>(bytes / page_bytes < 0xffff ? bytes / page_bytes : 0xffff);
}
/// It takes that much more of a ring than it needs: 1/64, at most an eighth of the ring. So a ring
/// of 128 KiB holds no more than 8 MiB of such payloads, or 8 of them: what bounds memory, and
/// leaves them in the cache between writer and reader.
[[nodiscard]] constexpr std::uint32_t ring_surcharge(std::uint16_t pages, std::uint64_t capacity) noexcept {
  const std::uint64_t share = page_bytes / 64 * pages;
  return static_cast<std::uint32_t>(share < capacity / 8 ? share : capacity / 8);
}

/// The most that a message has beside its envelope, unless it is in a block: sizes have 32 bits.
inline constexpr std::uint64_t largest_payload = 0xffff'0000;

/// The record size that holds a payload of `bytes`.
[[nodiscard]] constexpr std::uint32_t record_bytes(std::size_t bytes) noexcept {
  return static_cast<std::uint32_t>((bytes + 2 * granule - 1) / granule * granule);
}

}  // namespace orrery::wire
