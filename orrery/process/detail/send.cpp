// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/detail/send.hpp>

#include <orrery/scheduler/node.hpp>

#include <cstring>
#include <string>

#include <fmt/format.h>

namespace orrery::detail {

bool on_this_node(pe& self, std::uint32_t target) noexcept { return self.owner().is_local(target); }

slot& fresh_slot(pe& self) {
  slot& s = self.allocate_slot();
  s.state = scheduler::process_state::idle;
  return s;
}

namespace {
// It will not be executed.
void drop_message(pe& self, scheduler::message* m) noexcept {
  if (m->head.form == wire::payload_form::owned)
    reinterpret_cast<const scheduler::handler*>(m->head.handler)->drop(m->payload());
  self.messages().release(m);
}
}  // namespace

void push_call(pe& self, slot& s, scheduler::message* m, wire::record_kind level) {
  // it takes nothing more, and the caller may be what it still waits for
  if (s.dying) [[unlikely]] {
    const auto& h = *reinterpret_cast<const scheduler::handler*>(m->head.handler);
    drop_message(self, m);
    throw_gone(h, self.address_of(s));
  }
  // A process on the stack of this very fiber waits for what is called from it: it can never take
  // this message.
  for (const scheduler::activation* a = self.active(); a != nullptr; a = a->below) {
    if (a->process != &s || (s.cls() != nullptr && s.cls()->reentrant)) continue;
    std::string cycle = call_name(*reinterpret_cast<const scheduler::handler*>(m->head.handler));
    for (const scheduler::activation* b = self.active();; b = b->below) {
      cycle = fmt::format("{} -> {}", b->method != nullptr ? call_name(*b->method) : "(process function)", cycle);
      if (b == a) break;
    }
    drop_message(self, m);
    throw deadlock_error(cycle);
  }
  if (level != wire::record_kind::message) {
    self.push_at(level, s, m);
  } else {
    self.push(s, m);
  }
}

void begin_call_with(pe& self, address to, scheduler::sink& k, const scheduler::handler& h, const void* const* refs,
                     std::size_t payload, const arguments_ref& arguments) {
  prepare(k, self, to, h);
  if (to.pe == self.id()) {
    slot* s = to.slot == wire::no_slot ? &fresh_slot(self) : self.find(to.slot, to.generation);
    if (s == nullptr) [[unlikely]]
      throw_gone(h, to);
    scheduler::message* m = self.messages().allocate(payload);
    std::memcpy(m->payload(), refs, payload);
    m->source_pe = to.pe;
    write_envelope(m->head, to, h, wire::payload_form::refs, &k, 0, arguments.level());
    push_call(self, *s, m, arguments.level());
    return;
  }
  self.wait_while_stopped(to);
  scheduler::outbound& c = self.outbound_to(to.pe);
  if (c.remote) {
    send_wire(self, c, to, h, &k, arguments);
    return;
  }
  const std::uint32_t bytes = wire::record_bytes(payload);
  wire::envelope* e = self.reserve(c, bytes);
  std::memcpy(e->payload(), refs, payload);
  write_envelope(*e, to, h, wire::payload_form::refs, &k, static_cast<std::uint16_t>(bytes - wire::granule - payload),
                 arguments.level());
  self.commit(c, bytes);
}

}  // namespace orrery::detail
