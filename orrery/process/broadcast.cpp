// SPDX-License-Identifier: Apache-2.0
// What broadcasts do whatever their operation is.
#include <orrery/process/broadcast.hpp>

namespace orrery::detail {
namespace {

std::exception_ptr stays_on_its_pe() {
  return std::make_exception_ptr(bad_message(errc::unknown_handler, "a message that does not leave its PE"));
}

late_answer* answer_in(const void* payload) noexcept {
  late_answer* l = nullptr;
  std::memcpy(&l, payload, sizeof l);
  return l;
}

void run_answer(pe& self, slot&, scheduler::delivery& d) {
  if (d.remote) {
    d.fail(stays_on_its_pe());
    return;
  }
  const std::unique_ptr<late_answer> l(answer_in(d.payload));
  d.form = wire::payload_form::refs;  // nothing is left there to drop
  d.release();
  try {
    l->send(self);
  } catch (...) {
    scheduler::reply_error(self, l->reply, l->source_pe, !on_this_node(self, l->source_pe), l->method,
                           std::current_exception());
  }
}

const scheduler::handler answer_instance{"group",
                                         "answer",
                                         "void()",
                                         &run_answer,
                                         [](void* to, void* from) { std::memcpy(to, from, sizeof(late_answer*)); },
                                         [](void* payload) { delete answer_in(payload); },
                                         sizeof(late_answer*),
                                         false};

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
  scheduler::channel& channel = self.channel_to(to.pe);
  if (channel.remote) {
    c.to_other_node(self, channel, to, k, c.refs);
    return;
  }
  const std::size_t payload = c.arguments * sizeof(void*);
  const std::uint32_t bytes = wire::record_bytes(payload);
  wire::envelope* e = self.reserve(channel, bytes);
  std::memcpy(e->payload(), c.refs, payload);
  write_envelope(*e, to, c.method, wire::payload_form::refs, &k,
                 static_cast<std::uint16_t>(bytes - wire::granule - payload));
  self.commit(channel, bytes);
}

}  // namespace

void answer_later(pe& self, std::unique_ptr<late_answer> l) noexcept {
  late_answer* p = l.release();
  scheduler::message* m = self.allocate_message(sizeof p);
  std::memcpy(m->payload(), &p, sizeof p);
  m->source_pe = self.id();
  slot& s = fresh_slot(self);
  write_envelope(m->head, self.address_of(s), answer_instance, wire::payload_form::owned, nullptr, 0);
  self.push(s, m);
}

void broadcast_base::run_member(pe& self, slot& s, scheduler::delivery& d) {
  if (d.remote) {
    d.fail(stays_on_its_pe());
    return;
  }
  message_payload payload;
  std::memcpy(&payload, d.payload, sizeof payload);
  d.release();
  broadcast_base& b = *payload.of;
  try {
    if (!b.run(self, s, payload.index)) return;
  } catch (...) {
    b.fail(payload.index, std::current_exception());
  }
  b.one_done(self);
}

void run_broadcast(pe& self, slot& s, scheduler::delivery& d, const broadcast_kind& kind) {
  const std::uint64_t reply = d.reply;
  const std::uint32_t source = d.source_pe;
  const bool remote = d.remote;
  try {
    auto* part = object_in<group_part>(s);
    if (part == nullptr || !part->group()) [[unlikely]]
      throw_wrong_class(kind.method, s.cls());
    broadcast_base* b = kind.make(*part, d);
    b->reply = reply;
    b->source_pe = source;
    b->remote = remote;
    b->fan_out(self, kind.argument_bytes, kind.constructs);
    if (source != self.id() && s.state != scheduler::process_state::free && self.flow().over_limit(s)) [[unlikely]]
      self.flow().hold_back(s, source);
  } catch (...) {
    d.fail(std::current_exception());
  }
}

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

}  // namespace orrery::detail
