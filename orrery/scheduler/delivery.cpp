// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/delivery.hpp>

#include <orrery/scheduler/node.hpp>
#include <orrery/scheduler/pe.hpp>
#include <orrery/transport/shm/arena.hpp>
#include <orrery/transport/shm/world.hpp>

#include <cstring>
#include <limits>

namespace orrery::scheduler {

void delivery::release_other() noexcept {
  if (heap != nullptr) {
    self->messages().release(heap);
    heap = nullptr;
  } else if (from != nullptr) {
    if (from->ring.pop()) self->owner().wake(from->pe);
    from = nullptr;
  }
  if (form == wire::payload_form::block && payload != nullptr) {
    payload = nullptr;
    self->links().release_block(source_pe, block);
  }
}

void delivery::leave_ring() noexcept {
  if (from != nullptr && from->ring.pop()) self->owner().wake(from->pe);
  from = nullptr;
}

void delivery::fail(std::exception_ptr why) noexcept {
  if (form == wire::payload_form::owned && method != nullptr) method->drop(payload);
  release();
  if (reply != 0) {
    reply_error(*self, reply, source_pe, remote, method, std::move(why));
  } else if (method == nullptr || method->lost != &nobody_misses) {
    self->failures().report_post(method, std::move(why));
  }
}

void delivery::find_block() noexcept {
  wire::block_ref ref{};
  std::memcpy(&ref, payload, sizeof ref);
  payload = self->owner().block(source_pe, ref);
  payload_bytes = ref.bytes;
  block = ref.offset;
}

namespace {
// Bytes of payload blocks beyond the limit that stay in their senders' memory, which is mostly as
// large as that of this node.
std::uint64_t blocks_in_one_mailbox(const node& n) {
  transport::shm_world* const world = n.world() != nullptr ? n.world()->shared() : nullptr;
  return world != nullptr ? world->memory().stats().limit / 8 : std::numeric_limits<std::uint32_t>::max();
}
}  // namespace

// Moves a message out of its ring, whose record is given back.
message* delivery::to_message(const wire::envelope& e, std::uint32_t bytes, const slot* into) {
  std::uint32_t size = bytes;
  std::uint16_t padding = wire::envelope::read_once(e.padding);
  if (remote && form == wire::payload_form::wire) {
    // as it was checked
    padding = static_cast<std::uint16_t>(bytes - wire::granule - payload_bytes);
  } else if (form == wire::payload_form::block) {
    flow_control& flow = self->flow();
    if (into != nullptr && flow.over_limit(*into) && payload_bytes <= wire::largest_payload &&
        ((into->has_extra && flow.extra_of(*into)->limit != 0) ||
         into->charge > flow.mailbox_limit() + blocks_in_one_mailbox(self->owner()) / charge_unit))
      return copy_block(e);
    size = wire::record_bytes(sizeof(wire::block_ref));
    padding = wire::pages_beside(payload_bytes);
  } else if (form == wire::payload_form::owned) {
    size -= wire::ring_surcharge(padding, from->ring.capacity());
  }
  const std::size_t room = size - wire::granule;
  message* m = self->messages().allocate(room);
  m->source_pe = source_pe;
  m->head.size.store(size, std::memory_order_relaxed);
  m->head.kind = wire::level_of(wire::envelope::read_once(e.kind));
  m->head.form = form;
  m->head.padding = padding;
  m->head.slot = e.slot;
  m->head.generation = e.generation;
  m->head.handler = reinterpret_cast<std::uint64_t>(method);
  m->head.reply = reply;
  if (form == wire::payload_form::owned) {
    method->relocate(m->payload(), payload);
  } else if (form == wire::payload_form::block) {
    const wire::block_ref ref{block, payload_bytes};  // as it was checked
    std::memcpy(m->payload(), &ref, sizeof ref);
  } else {
    std::memcpy(m->payload(), payload, room);
  }
  leave_ring();
  return m;
}

// A message to a mailbox that holds much. Its sender's memory for messages is limited, too, and
// what lies there would keep others from being sent.
message* delivery::copy_block(const wire::envelope& e) {
  const std::uint32_t size = wire::record_bytes(payload_bytes);
  message* m = self->messages().allocate(size - wire::granule);
  m->source_pe = source_pe;
  m->head.size.store(size, std::memory_order_relaxed);
  m->head.kind = wire::level_of(wire::envelope::read_once(e.kind));
  m->head.form = wire::payload_form::wire;
  m->head.padding = static_cast<std::uint16_t>(size - wire::granule - payload_bytes);
  m->head.slot = e.slot;
  m->head.generation = e.generation;
  m->head.handler = reinterpret_cast<std::uint64_t>(method);
  m->head.reply = reply;
  std::memcpy(m->payload(), payload, payload_bytes);
  release();  // the record and the block
  return m;
}

}  // namespace orrery::scheduler
