// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/priority.hpp>

namespace orrery::detail {

namespace {
bool send_to_mailbox(pe& self, address to, const scheduler::handler& h, scheduler::sink* sink, bool may_wait,
                     const arguments_ref& arguments) {
  slot* s = self.find(to.slot, to.generation);
  if (s != nullptr && self.flow().over_limit(*s)) [[unlikely]] {
    if (!may_wait) return false;
    self.flow().wait_for_room(*s);
    s = self.find(to.slot, to.generation);
  }
  if (s == nullptr) [[unlikely]] {
    fail_gone(h, to, sink, self);
    return true;
  }
  scheduler::message* m = self.allocate_message(arguments.owned_bytes());
  try {
    arguments.move(m->payload());
  } catch (...) {
    self.release_message(m);
    throw;
  }
  m->source_pe = to.pe;
  fill(m->head, to, h, wire::payload_form::owned, sink, arguments.pages());
  self.push_at(arguments.level(), *s, m);
  return true;
}

bool send_away(pe& self, address to, const scheduler::handler& h, scheduler::sink* sink, bool may_wait,
               const arguments_ref& arguments) {
  if (may_wait) {
    self.wait_while_stopped(to);
  } else if (self.is_stopped(to)) {
    return false;
  }
  scheduler::channel& c = self.channel_to(to.pe);
  if (c.remote) {
    if (!may_wait && !has_space(c, arguments.wire_size())) return false;
    send_wire(self, c, to, h, sink, arguments);
    return true;
  }
  const std::uint32_t bytes =
      wire::record_bytes(arguments.owned_bytes()) + wire::ring_surcharge(arguments.pages(), c.ring.capacity());
  wire::envelope* e = may_wait ? self.reserve(c, bytes) : c.try_reserve(bytes);
  if (e == nullptr) return false;
  arguments.move(e->payload());
  fill(*e, to, h, wire::payload_form::owned, sink, arguments.pages(), arguments.level());
  self.commit(c, bytes);
  return true;
}
}  // namespace

bool send_at_level(pe& self, address to, const scheduler::handler& h, scheduler::sink* sink, bool may_wait,
                   const arguments_ref& arguments) {
  if (to.pe == self.id()) return send_to_mailbox(self, to, h, sink, may_wait, arguments);
  try {
    return send_away(self, to, h, sink, may_wait, arguments);
  } catch (const node_lost&) {
    if (sink != nullptr) throw;
    self.failures().report_unsent(h, to.pe, std::current_exception());
    return true;
  }
}

}  // namespace orrery::detail
