// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/mpi/outgoing_ring.hpp>

#include <algorithm>

namespace orrery::transport {

namespace {

constexpr std::uint32_t block_record = wire::granule + sizeof(wire::block_ref);

}  // namespace

std::uint32_t outgoing_ring::published_at(std::uint64_t position) const noexcept {
  // SYNC: acquire, with ring_producer::publish
  return at(position).size.load(std::memory_order_acquire);
}

bool outgoing_ring::has_more() const noexcept { return rest_ != 0 || published_at(taken_) != 0; }

void outgoing_ring::take(frame& into, user& by) {
  if (!opened_) {
    if (!into.fits(0)) return;
    into.add({section_kind::open, 0, from_, to_, 0, capacity_});
    opened_ = true;
  }
  while (rest_ != 0 || published_at(taken_) != 0) {
    const bool more = rest_ == 0 && has_block(at(taken_)) ? take_block(into, by) : take_records(into, by);
    if (!more) return;
  }
}

bool outgoing_ring::take_block(frame& into, user& by) {
  if (!into.fits(block_record)) return false;
  wire::envelope& e = at(taken_);
  wire::block_ref ref{};
  std::memcpy(&ref, e.payload(), sizeof ref);
  const std::uint64_t tag = by.send_block(ref.offset, ref.bytes);
  std::byte* const to = into.add({section_kind::block, block_record, from_, to_, taken_, tag});
  std::memcpy(to, &e, block_record);
  taken_ += e.size.load(std::memory_order_relaxed);
  return true;
}

// Whole records, but the first and the last, up to a block or to the end of the ring.
bool outgoing_ring::take_records(frame& into, user& by) {
  const std::size_t room = into.room() / wire::granule * wire::granule;
  if (room == 0) return false;
  std::byte* const to = into.next_payload();
  const std::uint64_t begin = taken_;
  std::size_t used = 0;
  while (used < room) {
    const bool is_first = rest_ == 0;
    if (is_first) {
      rest_ = published_at(taken_);
      if (rest_ == 0) break;
      if (has_block(at(taken_))) {
        rest_ = 0;
        break;
      }
    }
    wire::envelope& e = at(taken_);  // only if `is_first`
    const bool fills = is_first && e.kind == wire::record_kind::skip;
    const auto n = static_cast<std::uint32_t>(std::min<std::size_t>(fills ? wire::granule : rest_, room - used));
    std::memcpy(to + used, &e, n);
    if (is_first && e.kind == wire::record_kind::release) {
      const std::uint64_t there = by.release_block(e.reply);
      std::memcpy(to + used + offsetof(wire::envelope, reply), &there, sizeof there);
    }
    used += n;
    taken_ += fills ? rest_ : n;
    rest_ = fills ? 0 : rest_ - n;
    if ((taken_ & (capacity_ - 1)) == 0) break;
  }
  if (used == 0) return false;
  into.add({section_kind::records, static_cast<std::uint32_t>(used), from_, to_, begin, taken_ - begin});
  return true;
}

void outgoing_ring::reclaim() noexcept {
  if (!is_reclaimable_ || !is_empty()) return;
  is_reclaimable_ = false;
  reclaim_ring_memory(*header_, capacity_, taken_);
  idleness_.reclaimed_at(taken_);
}

bool outgoing_ring::give_back(std::uint64_t position, std::uint64_t word) noexcept {
  if (position > taken_ || position < header_->head.load(std::memory_order_relaxed) || position % wire::granule != 0)
    return false;
  header_->stops.store(static_cast<std::uint32_t>(word), std::memory_order_relaxed);
  if (word >> 32 != 0) header_->refused.store(1, std::memory_order_relaxed);
  header_->head.store(position, std::memory_order_release);  // SYNC: with ring_producer::refresh
  return true;
}

}  // namespace orrery::transport
