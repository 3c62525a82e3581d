// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/wire/envelope.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace orrery::transport {

/// The part of a ring that both sides see; `capacity` bytes of records follow it. It lies in the
/// heap (PEs of one node) or in the producer's segment (PEs of two nodes).
struct ring_header {
  static constexpr std::uint64_t magic_value = 0x4f52'5245'5259'5247;  // "ORRERYRG"

  alignas(64) std::atomic<std::uint64_t> head;       ///< released by the consumer up to here
  std::atomic<std::uint32_t> producer_waits;         ///< 1: wake the producer's PE when head moves
  /// How often the consumer has told the producer's PE to hold back.
  std::atomic<std::uint32_t> stops;
  /// Not 0: the consumer's node treats the producer's as lost, and reads no more.
  std::atomic<std::uint32_t> refused;
  alignas(64) std::uint64_t magic;
  std::uint64_t capacity;
  std::uint32_t producer_pe;
  std::uint32_t consumer_pe;

  [[nodiscard]] std::byte* data() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
  [[nodiscard]] static constexpr std::size_t bytes_for(std::size_t capacity) noexcept {
    return sizeof(ring_header) + capacity;
  }
};
static_assert(sizeof(ring_header) == 128);

/// Makes a ring in zeroed memory of `ring_header::bytes_for(capacity)` bytes, aligned to 64.
inline ring_header* make_ring(void* memory, std::uint64_t capacity, std::uint32_t producer_pe,
                              std::uint32_t consumer_pe) noexcept {
  auto* r = new (memory) ring_header{};
  r->capacity = capacity;
  r->producer_pe = producer_pe;
  r->consumer_pe = consumer_pe;
  r->magic = ring_header::magic_value;
  return r;
}

// A single-producer, single-consumer ring of records of varying size.
//
// Problem: one cache line has to travel for a small message, not three (tail, flag, record). So a
// record publishes itself: its `size` word is the flag. The consumer polls the word where the next
// record will begin.
//
// Invariants
//   I1  The `size` word at `tail` is 0 whenever the consumer can look at it: the producer clears
//       the word behind a record *before* it publishes the record, and the ring begins zeroed.
//   I2  head <= tail <= head + capacity - granule: one granule stays free for the cleared word of
//       I1.
//   I3  A record never wraps; a `skip` record fills the end of the ring.
//   I4  Only the producer writes records, only the consumer writes `head`. A producer that dies in
//       the middle of a record has not published it: the consumer sees an empty ring.
//   I5  Positions only grow; an index is position & (capacity - 1).
//
// Memory orders: size.store(release) by the producer pairs with size.load(acquire) by the consumer
// and hands over the record. head.store(release) by the consumer pairs with head.load(acquire) by
// the producer and hands back the space.

/// The sending side. Owned by one PE; not thread-safe; `header` outlives it.
class ring_producer {
 public:
  ring_producer() = default;
  explicit ring_producer(ring_header& header) noexcept
      : header_(&header), data_(header.data()), capacity_(header.capacity), mask_(capacity_ - 1) {}

  /// The largest record that is sure to fit into an empty ring.
  [[nodiscard]] std::uint32_t max_record() const noexcept { return static_cast<std::uint32_t>(capacity_ / 4); }

  /// Space for a record of `bytes` (a multiple of granule, at most max_record()), or null if the
  /// ring is full. Fill it, then commit(bytes). Space that was reserved and not committed is simply
  /// reserved again.
  [[nodiscard]] wire::envelope* reserve(std::uint32_t bytes) noexcept {
    const std::uint64_t to_end = capacity_ - (tail_ & mask_);
    const std::uint64_t need = bytes + (to_end < bytes ? to_end : 0) + wire::granule;
    if (tail_ + need - head_ > capacity_) [[unlikely]] {
      refresh();
      if (tail_ + need - head_ > capacity_) return nullptr;
    }
    if (to_end < bytes) [[unlikely]] {
      wire::envelope* filler = at(tail_);
      filler->kind = wire::record_kind::skip;
      publish(static_cast<std::uint32_t>(to_end));
    }
    return at(tail_);
  }

  /// Makes the record that was reserved visible to the consumer.
  void commit(std::uint32_t bytes) noexcept { publish(bytes); }

  /// Bytes that were ever published here, fillers included; what the consumer has when it has
  /// read() all.
  [[nodiscard]] std::uint64_t written() const noexcept { return tail_; }

  /// True if a consumer has released a position that was never written: it is broken or hostile.
  [[nodiscard]] bool corrupt() const noexcept { return corrupt_; }

  /// How often the consumer has asked to hold back, whether or not the records that say for what
  /// have been received.
  [[nodiscard]] std::uint32_t stops() const noexcept {
    return header_ != nullptr ? header_->stops.load(std::memory_order_relaxed)
                              : 0;  // a hint: nothing is read because of it
  }

  /// True if the consumer's node has said that it takes nothing more; see ring_consumer::refuse.
  [[nodiscard]] bool refused() const noexcept {
    return header_ != nullptr && header_->refused.load(std::memory_order_relaxed) != 0;
  }

  /// True if a reserve that failed may now succeed.
  [[nodiscard]] bool has_moved() noexcept {
    const std::uint64_t before = head_;
    refresh();
    return head_ != before;
  }
  [[nodiscard]] bool drained() noexcept {
    refresh();
    return head_ == tail_;
  }

  /// f(record, bytes) for each record that the consumer, which is gone, has not given back: it may
  /// have read the oldest of them, up to a quarter of the ring. Believes no position or size that
  /// the consumer could have written; `bytes` is the size as it was checked, and all else in the
  /// record is f's to check.
  template <class F>
  void for_each_left(F&& f) const {
    if (header_ == nullptr) return;
    // SYNC: acquire, with ring_consumer::release_space
    std::uint64_t position = header_->head.load(std::memory_order_acquire);
    if (position < head_ || position > tail_ || position % wire::granule != 0) return;
    while (position != tail_) {
      const wire::envelope& e = *at(position);
      const std::uint64_t bytes = e.size.load(std::memory_order_relaxed);
      if (bytes < wire::granule || bytes % wire::granule != 0 || bytes > tail_ - position ||
          bytes > capacity_ - (position & mask_))
        return;
      if (e.kind != wire::record_kind::skip) f(e, static_cast<std::uint32_t>(bytes));
      position += bytes;
    }
  }

  /// The record of `bytes` that was committed last.
  [[nodiscard]] wire::envelope* latest(std::uint32_t bytes) const noexcept { return at(tail_ - bytes); }
  /// Where the next one will be, to be fetched.
  [[nodiscard]] const void* position() const noexcept { return data_ + (tail_ & mask_); }
  /// Both sides begin at the start of the ring again. For rings with both ends on one thread, when
  /// all has been read.
  void restart() noexcept {
    tail_ = head_ = 0;
    header_->head.store(0, std::memory_order_relaxed);
    at(0)->size.store(0, std::memory_order_relaxed);  // I1
  }

  [[nodiscard]] std::uint64_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] ring_header* header() const noexcept { return header_; }
  explicit operator bool() const noexcept { return header_ != nullptr; }

 private:
  [[nodiscard]] wire::envelope* at(std::uint64_t position) const noexcept {
    return reinterpret_cast<wire::envelope*>(data_ + (position & mask_));
  }
  void publish(std::uint32_t bytes) noexcept {
    wire::envelope* record = at(tail_);
    tail_ += bytes;
    at(tail_)->size.store(0, std::memory_order_relaxed);  // I1
    record->size.store(bytes, std::memory_order_release);  // SYNC: with ring_consumer::front
  }
  void refresh() noexcept {
    // SYNC: acquire, with ring_consumer::release_space
    const std::uint64_t head = header_->head.load(std::memory_order_acquire);
    if (head < head_ || head > tail_) [[unlikely]] {
      corrupt_ = true;  // never believe it: the space stays taken
      return;
    }
    head_ = head;
  }

  ring_header* header_ = nullptr;
  std::byte* data_ = nullptr;
  std::uint64_t capacity_ = 0;
  std::uint64_t mask_ = 0;
  std::uint64_t tail_ = 0;
  std::uint64_t head_ = 0;  // as last seen
  bool corrupt_ = false;
};

/// The receiving side. Owned by one PE; not thread-safe. It believes nothing that it reads from the
/// ring but checks it: the producer may be another OS process.
class ring_consumer {
 public:
  ring_consumer() = default;
  /// `capacity` is the checked copy of header.capacity (a power of two).
  ring_consumer(ring_header& header, std::uint64_t capacity) noexcept
      : header_(&header), data_(header.data()), capacity_(capacity), mask_(capacity - 1) {}

  /// The oldest record, or null if there is none. The record stays until pop.
  [[nodiscard]] wire::envelope* front() noexcept {
    for (;;) {
      auto* e = reinterpret_cast<wire::envelope*>(data_ + (head_ & mask_));
      // SYNC: acquire, with ring_producer::publish
      const std::uint32_t size = e->size.load(std::memory_order_acquire);
      if (size == 0) return nullptr;
      if (size % wire::granule != 0 || size > capacity_ - (head_ & mask_)) [[unlikely]] {
        corrupt_ = true;
        return nullptr;
      }
      size_ = size;
      if (e->kind != wire::record_kind::skip) [[likely]]
        return e;
      // Fillers that lead elsewhere could lead round and round for ever.
      if ((head_ & mask_) == 0 || size != capacity_ - (head_ & mask_)) [[unlikely]] {
        corrupt_ = true;
        return nullptr;
      }
      pop();
    }
  }

  /// Size of the record that front() returned, as it was checked.
  [[nodiscard]] std::uint32_t front_bytes() const noexcept { return size_; }

  /// Bytes that were ever taken out.
  [[nodiscard]] std::uint64_t read() const noexcept { return head_; }
  /// Where the next record is or will be, to be fetched.
  [[nodiscard]] const void* position() const noexcept { return data_ + (head_ & mask_); }

  /// Gives up the record that front() returned. True if space was handed back to the producer and
  /// the producer had asked to be woken.
  bool pop() noexcept {
    head_ += size_;
    if (head_ - released_ >= capacity_ / 4) [[unlikely]]
      return release_space();
    return false;
  }

  /// Hands all space that was read back to the producer; to be called when the ring was found
  /// empty.
  bool release_space() noexcept;
  /// See ring_producer::stops. The consumer alone writes it.
  void count_stop() noexcept {
    header_->stops.store(header_->stops.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  /// Tells the producer's PE that its node is treated as lost. This takes no room anywhere, so that
  /// it can always be said.
  void refuse() noexcept {
    if (header_ != nullptr) header_->refused.store(1, std::memory_order_relaxed);
  }
  /// See ring_producer::restart.
  void restart() noexcept { head_ = released_ = 0; }

  [[nodiscard]] std::uint64_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] bool has_unreleased() const noexcept { return head_ != released_; }
  [[nodiscard]] bool corrupt() const noexcept { return corrupt_; }
  [[nodiscard]] ring_header* header() const noexcept { return header_; }

 private:
  ring_header* header_ = nullptr;
  std::byte* data_ = nullptr;
  std::uint64_t capacity_ = 0;
  std::uint64_t mask_ = 0;
  std::uint64_t head_ = 0;
  std::uint64_t released_ = 0;
  std::uint32_t size_ = 0;
  bool corrupt_ = false;
};

}  // namespace orrery::transport
