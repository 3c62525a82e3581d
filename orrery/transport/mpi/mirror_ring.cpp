// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/mpi/mirror_ring.hpp>

#include <orrery/transport/mpi/frame.hpp>

#include <cstddef>
#include <cstring>

namespace orrery::transport {

namespace {

// The record and what of it nobody reads: whole granules.
std::span<const std::byte> whole_of(std::span<const std::byte> record, std::span<std::byte> into) noexcept {
  std::memcpy(into.data(), record.data(), record.size());
  return into;
}

}  // namespace

bool mirror_ring::accepts(std::uint64_t position, std::uint64_t bytes, std::uint64_t advance) const noexcept {
  // SYNC: acquire, with ring_consumer::release_space: the reader is through with what is
  // overwritten.
  const std::uint64_t released = header_->head.load(std::memory_order_acquire);
  return position == filled_ && bytes != 0 && bytes <= advance && advance <= capacity_ - (filled_ & (capacity_ - 1)) &&
         bytes % wire::granule == 0 && advance % wire::granule == 0 &&
         filled_ + advance - released <= capacity_ - wire::granule;
}

bool mirror_ring::fill(std::uint64_t position, std::span<const std::byte> bytes, std::uint64_t advance) noexcept {
  if (damaged_ || !accepts(position, bytes.size(), advance)) return false;
  constexpr std::size_t flag = sizeof(std::uint32_t);
  if (filled_ == shown_) {
    std::memcpy(&size_, bytes.data(), flag);
    std::memcpy(at(filled_) + flag, bytes.data() + flag, bytes.size() - flag);  // I2
  } else {
    std::memcpy(at(filled_), bytes.data(), bytes.size());
  }
  filled_ += advance;
  return true;
}

bool mirror_ring::fill_block(std::uint64_t position, std::span<const std::byte> record) {
  std::uint32_t size = 0;
  std::memcpy(&size, record.data(), sizeof size);
  std::byte whole[2 * wire::granule] = {};
  if (record.size() > sizeof whole || !fill(position, whole_of(record, whole), size)) return false;
  blocks_.push_back({position, false});
  return true;
}

void mirror_ring::complete_block(std::uint64_t position, std::uint64_t offset) noexcept {
  for (pending& p : blocks_) {
    if (p.position != position) continue;
    p.complete = true;
    std::memcpy(at(position) + sizeof(wire::envelope) + offsetof(wire::block_ref, offset), &offset, sizeof offset);
  }
}

bool mirror_ring::show() noexcept {
  const std::uint64_t first = shown_;
  const std::uint32_t first_size = size_;
  std::uint64_t p = shown_;
  std::uint32_t size = size_;
  while (p < filled_) {
    const bool sound = size >= wire::granule && size % wire::granule == 0 && size <= capacity_ - (p & (capacity_ - 1));
    const bool came_as_block = !blocks_.empty() && blocks_.front().position == p;
    if (!sound || !is_in_place(p, size) || came_as_block != has_block(record_at(p))) {
      damaged_ = true;
      return false;
    }
    if (size > filled_ - p || (came_as_block && !blocks_.front().complete)) break;
    if (came_as_block) blocks_.pop_front();
    p += size;
    size = p < filled_ ? size_at(p).load(std::memory_order_relaxed) : 0;
  }
  if (p == first) return false;
  shown_ = p;
  size_ = size;
  size_at(p).store(0, std::memory_order_relaxed);  // I2, before what precedes it is shown
  size_at(first).store(first_size, std::memory_order_release);  // SYNC: with ring_consumer::front
  return true;
}

// A record that fills the end of the ring leads to its begin.
bool mirror_ring::is_in_place(std::uint64_t position, std::uint32_t size) const noexcept {
  const std::uint64_t in_ring = position & (capacity_ - 1);
  return record_at(position).kind != wire::record_kind::skip || (in_ring != 0 && size == capacity_ - in_ring);
}

void mirror_ring::reclaim() noexcept {
  // SYNC: acquire, with ring_consumer::release_space: the reader looks at nothing but the next
  // record's size.
  const bool is_empty = shown_ == filled_ && header_->head.load(std::memory_order_acquire) == filled_;
  if (damaged_ || !idleness_.look(filled_, capacity_, is_empty)) return;
  reclaim_ring_memory(*header_, capacity_, filled_);
  idleness_.reclaimed_at(filled_);
}

mirror_ring::credit mirror_ring::owed() const noexcept {
  const std::uint64_t refused = header_->refused.load(std::memory_order_relaxed);
  // SYNC: acquire, with ring_consumer::release_space
  return {header_->head.load(std::memory_order_acquire),
          refused << 32 | header_->stops.load(std::memory_order_relaxed)};
}

}  // namespace orrery::transport
