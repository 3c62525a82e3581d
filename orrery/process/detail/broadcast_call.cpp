// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/detail/broadcast_call.hpp>

#include <cstring>
#include <string>

#include <fmt/format.h>

namespace orrery::detail {

namespace {

// For a call whose caller waits: pointers to its arguments travel inside the node.
void call_part(pe& self, address to, scheduler::sink& k, const part_call& c) {
  prepare(k, self, to, c.method);
  if (to.pe == self.id()) {
    group_part* part = find_part(self, to.slot, to.generation);
    if (part == nullptr) throw_gone(c.method, to);
    broadcast_base* b = c.make(*part, c.refs);
    b->reply = reinterpret_cast<std::uint64_t>(&k);
    b->source_pe = self.id();
    b->fan_out(self, 0, c.constructs);
    return;
  }
  self.wait_while_stopped(to);
  scheduler::outbound& outbound = self.outbound_to(to.pe);
  if (outbound.remote) {
    c.to_other_node(self, outbound, to, k, c.refs);
    return;
  }
  const std::size_t payload = c.arguments * sizeof(void*);
  const std::uint32_t bytes = wire::record_bytes(payload);
  wire::envelope* e = self.reserve(outbound, bytes);
  std::memcpy(e->payload(), c.refs, payload);
  write_envelope(*e, to, c.method, wire::payload_form::refs, &k,
                 static_cast<std::uint16_t>(bytes - wire::granule - payload));
  self.commit(outbound, bytes);
}

}  // namespace

void call_each_part(const group_data& d, const part_call& c, scheduler::sink& (*sink_of)(void* sinks, std::size_t part),
                    void* sinks) {
  pe& self = here_pe();
  self.require_process();
  check_not_inside(self, d, c.method);
  const std::size_t n = d.parts.size();
  const auto send = [&](std::size_t i) {
    scheduler::sink& k = sink_of(sinks, i);
    try {
      call_part(self, d.parts[i].at, k, c);
    } catch (...) {  // the others use our arguments: they have to be waited for
      k.error = std::current_exception();
      k.state = scheduler::sink::status::error;
    }
  };
  std::size_t mine = n;  // last, so that the others begin sooner
  for (std::size_t i = 0; i < n; ++i) {
    if (d.parts[i].at.pe == self.id()) {
      mine = i;
    } else {
      send(i);
    }
  }
  if (mine != n) send(mine);
  for (std::size_t i = 0; i < n; ++i) self.wait(sink_of(sinks, i));
}

void check_not_inside(pe& self, const group_data& d, const scheduler::handler& h) {
  const group_data::part* p = d.on(self.id());
  if (p == nullptr) return;
  group_part* part = find_part(self, p->at.slot, p->at.generation);
  if (part == nullptr) return;
  for (const scheduler::activation* a = self.active(); a != nullptr; a = a->below) {
    if (a->process->cls() == nullptr || a->process->is_function || a->process->cls()->reentrant) continue;
    if (part->index_of(*a->process) == part->members().size()) continue;
    throw deadlock_error(fmt::format("{} -> {}::{} (a member calls its own group and waits; use start or post)",
                                     a->method != nullptr
                                         ? fmt::format("{}::{}", a->method->class_name, a->method->method)
                                         : std::string("(constructor)"),
                                     h.class_name, h.method));
  }
}

bool wait_for_members(pe& self, address at) {
  slot* s = self.find(at.slot, at.generation);
  if (s == nullptr) return false;
  if (!self.flow().over_limit(*s)) return true;
  // Otherwise messages that a waiting member was to empty would wait with it.
  group_part* part = find_part(self, at.slot, at.generation);
  for (const scheduler::activation* a = self.active(); a != nullptr; a = a->below)
    if (part != nullptr && part->index_of(*a->process) != part->members().size()) {
      self.flow().excess().took_more(*s);
      return true;
    }
  (void)self.flow().wait_for_room(*s);
  return self.find(at.slot, at.generation) != nullptr;
}

}  // namespace orrery::detail
