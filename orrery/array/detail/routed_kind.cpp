// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/detail/activity.hpp>
#include <orrery/array/detail/core.hpp>
#include <orrery/array/detail/routed_kind.hpp>
#include <orrery/scheduler/node.hpp>

#include <cstring>

namespace orrery::detail {
namespace {

// Before it leaves this PE. One that had waited here has no number yet. It gets one of this PE,
// which then is the one to be told: numbers of two PEs must never meet in one table. (One that was
// kept with its element has come from elsewhere; a result of a reduction comes from nobody.)
void count_hop(const array_core& part, const routed_kind& kind, route_head& h, std::uint32_t source_pe) noexcept {
  if (!kind.counts) {
    ++h.hops;
    return;
  }
  const bool first = h.hops == 0 && source_pe == part.self().id();
  note_hop(part.self(), first);
  if (!first && (h.flags & route_head::asks) != 0) h.flags |= route_head::asked;
  const std::uint32_t here = part.self().id();
  const bool has_number = h.number != 0;
  if (first && !has_number && h.call == 0) h.origin = here;
  if (first && !has_number && h.origin == here && (h.flags & route_head::to_home) == 0) {
    h.number = part.last_number();
  } else {
    ++h.hops;
  }
}

// The owned form, to another PE of this node. False if its ring is full.
bool move_on(array_core& part, scheduler::delivery& d, const wire::envelope& e, std::uint32_t to) {
  pe& self = part.self();
  const scheduler::handler& h = *d.method;
  scheduler::outbound& c = self.outbound_to(to);
  const std::uint32_t record = wire::record_bytes(h.payload_bytes) + wire::ring_surcharge(e.padding, c.ring.capacity());
  wire::envelope* out = c.try_reserve(record);
  if (out == nullptr) return false;
  h.relocate(out->payload(), d.payload);
  write_envelope(*out, {to, part.id(), 0}, h, wire::payload_form::owned, nullptr, e.padding, wire::level_of(e.kind));
  d.form = wire::payload_form::refs;  // nothing is left there to drop
  d.release();
  self.commit(c, record);
  return true;
}

}  // namespace

void send_on(array_core& part, const routed_kind& kind, scheduler::delivery& d, const wire::envelope& e,
             std::uint32_t size, std::uint32_t to) {
  pe& self = part.self();
  const scheduler::handler& method = *d.method;
  const wire::record_kind level = wire::level_of(wire::envelope::read_once(e.kind));
  route_head h;
  if (d.form != wire::payload_form::owned) {
    const auto from = wire_payload(d, e, size);
    bytes b(from.begin(), from.end());
    std::memcpy(&h, b.data(), sizeof h);
    count_hop(part, kind, h, d.source_pe);
    std::memcpy(b.data(), &h, sizeof h);
    d.release();
    tell(self, to, method, part.id(), 0, b, level);
    return;
  }
  std::memcpy(&h, d.payload, sizeof h);
  count_hop(part, kind, h, d.source_pe);
  std::memcpy(d.payload, &h, sizeof h);
  if (self.owner().is_local(to) && to != self.id() && move_on(part, d, e, to)) return;
  bytes b;
  try {
    b = kind.to_wire(d.payload);
  } catch (...) {
    kind.send_nothing(part, d.payload, to);
    throw;
  }
  method.drop(d.payload);
  d.form = wire::payload_form::refs;
  d.release();
  tell(self, to, method, part.id(), 0, b, level);
}

void fail_routed(array_core& part, const routed_kind& kind, scheduler::delivery& d, const route_head& h,
                 std::exception_ptr why) {
  if (!kind.counts) {
    d.release();
    return;
  }
  const activity_end end(&part);
  reject_routed(part.self(), *d.method, kind, d, h, std::move(why));
}

void reject_routed(pe& self, const scheduler::handler& method, const routed_kind& kind, scheduler::delivery& d,
                   const route_head& h, std::exception_ptr why) noexcept {
  if (d.form == wire::payload_form::owned) {
    method.drop(d.payload);
    d.form = wire::payload_form::refs;
  }
  d.release();
  if (kind.may_miss && h.call == 0 && is_process_gone(why)) return;
  answer_error(self, {h.origin, h.call}, &method, std::move(why));
}

void forward_routed(array_core& core, cell_base&, scheduler::message* m) {
  route_head h;
  std::memcpy(&h, m->payload(), sizeof h);
  if (core.resends_failed()) h.flags |= route_head::tried;
  if (h.hops > 1) h.hops = 1;  // it had arrived; what it goes now is another way
  h.take_along();
  std::memcpy(m->payload(), &h, sizeof h);
  dispatch(core.self(), m);
}

}  // namespace orrery::detail
