// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/detail/outgoing.hpp>

#include <orrery/scheduler/node.hpp>
#include <orrery/scheduler/order_through_nodes.hpp>

#include <cstring>

namespace orrery::detail {

namespace {
constexpr std::size_t largest_in_ring = 4096;
constexpr std::uint32_t many_blocks = 4;
// of who waits for memory, before it goes over the limit
constexpr std::int64_t patience_ns = 50'000'000;
}  // namespace

std::uint32_t outgoing::record_bytes(const scheduler::outbound& c, std::size_t bytes) noexcept {
  if (bytes <= largest_in_ring) return wire::record_bytes(bytes);
  return wire::record_bytes(sizeof(wire::block_ref)) +
         wire::ring_surcharge(wire::pages_beside(bytes), c.ring.capacity());
}

outgoing::outgoing(scheduler::pe& self, scheduler::outbound& c, std::size_t bytes, bool may_wait)
    : self_(self), outbound_(c), bytes_(record_bytes(c, bytes)) {
  if (!may_wait) {
    take_at_once(bytes);
  } else if (bytes > largest_in_ring) {
    await_block(bytes);
  } else {
    record_ = self.reserve(c, bytes_);
    payload_ = {record_->payload(), bytes};
  }
}

// Other processes do not run meanwhile: they might take the space in the ring.
void outgoing::take_at_once(std::size_t bytes) {
  record_ = outbound_.try_reserve(bytes_);
  if (record_ == nullptr) return;
  std::byte* at = record_->payload();
  if (bytes > largest_in_ring) {
    at = self_.owner().allocate_block(self_.id(), outbound_.pe, bytes, block_);
    in_block_ = at != nullptr;
  }
  if (at != nullptr) payload_ = {at, bytes};
}

void outgoing::await_block(std::size_t bytes) {
  scheduler::outbound& c = outbound_;
  // A sender that never has to wait would never hear which blocks are free again, and fill new
  // ones that are not in the cache.
  if (c.blocks_out >= many_blocks && self_.active() != nullptr && !self_.refusing()) {
    ++c.users;
    self_.flow().listen();
    --c.users;
  }
  std::byte* data = self_.owner().allocate_block(self_.id(), c.pe, bytes, block_);
  // All memory for messages is on its way; receivers give it back. Some do so only when they have
  // sent something themselves: a process whose answer has to wait here keeps what its mailbox
  // holds. So nobody waits for ever.
  for (std::int64_t began = transport::now_ns(); data == nullptr;) {
    self_.require_process();
    const std::int64_t now = transport::now_ns();
    ++c.users;
    (void)self_.park_until(now + 100'000);
    --c.users;
    data = self_.owner().allocate_block(self_.id(), c.pe, bytes, block_, now - began > patience_ns);
  }
  in_block_ = true;
  payload_ = {data, bytes};
}

outgoing::~outgoing() {
  if (in_block_) self_.owner().block_released(outbound_.pe, block_);
}

void outgoing::send_message(address to, const scheduler::handler& h, scheduler::sink* sink, wire::record_kind level) {
  reserve_record();
  const std::uint64_t reply = sink != nullptr ? self_.replies().expect(*sink) : 0;
  commit(level, to.slot, to.generation, h.index, reply);
}

void outgoing::send_reply(std::uint64_t reply) {
  reserve_record();
  commit(wire::record_kind::reply, 0, 0, 0, reply);
}

void outgoing::reserve_record() {
  if (in_block_) record_ = self_.reserve(outbound_, bytes_);
}

void outgoing::commit(wire::record_kind kind, std::uint32_t slot, std::uint32_t generation, std::uint64_t handler,
                      std::uint64_t reply) noexcept {
  if (in_block_) {
    const wire::block_ref ref{block_, payload_.size()};
    std::memcpy(record_->payload(), &ref, sizeof ref);
    in_block_ = false;
    ++outbound_.blocks_out;
    record_->form = wire::payload_form::block;
    record_->padding = wire::pages_beside(payload_.size());
  } else {
    record_->form = wire::payload_form::wire;
    record_->padding = static_cast<std::uint16_t>(bytes_ - wire::granule - payload_.size());
  }
  record_->kind = kind;
  record_->slot = slot;
  record_->generation = generation;
  record_->handler = handler;
  record_->reply = reply;
  scheduler::order_before_other_nodes();
  self_.commit(outbound_, bytes_);
}

}  // namespace orrery::detail
