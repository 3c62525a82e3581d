// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/invoke.hpp>

#include <orrery/scheduler/fork.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/wire/exception.hpp>

#include <fmt/format.h>

namespace orrery::detail {

namespace {
std::string call_name(const scheduler::handler& h) { return fmt::format("{}::{}", h.class_name, h.method); }
}  // namespace

void throw_not_running() {
  if (scheduler::is_forked_child)
    throw usage_error(
        errc::not_running, verbatim,
        "this OS process was made with fork() in a method and is no part of the world: it can call no process; "
        "do that in the parent, or let the child exec a program that joins the world");
  throw usage_error(errc::not_running, "this call");
}

bool is_process_gone(const std::exception_ptr& why) noexcept {
  try {
    std::rethrow_exception(why);
  } catch (const process_gone&) {
    return true;
  } catch (...) {
    return false;
  }
}
void throw_gone(const scheduler::handler& h, address to) { std::rethrow_exception(scheduler::gone_error(h, to)); }

void throw_wrong_class(const scheduler::handler& h, const scheduler::class_info* is) {
  throw bad_message(
      errc::unknown_handler, verbatim,
      fmt::format("{}: the remote pointer is of the wrong class: what it names is {}, not {} or derived from it; "
                  "take a pointer as spawn or lookup gives it, and convert it with remote_cast only",
                  call_name(h), is != nullptr ? fmt::format("of class {}", is->name) : "no object", h.class_name));
}

void rethrow_as_received(const scheduler::handler& h, pe& self) {
  const std::exception_ptr thrown = std::current_exception();
  if (keeps_class(thrown)) throw;
  std::rethrow_exception(as_received(thrown, scheduler::where_is(&h, self.id())));
}

void go_on_with(pe& self, scheduler::delivery& d, std::span<const std::byte> arguments) {
  if (arguments.size() > wire::largest_payload)
    throw usage_error(errc::bad_argument,
                      fmt::format("{}: {} bytes of arguments: with --orrery-serialize {} are the most",
                                  call_name(*d.method), arguments.size(), wire::largest_payload));
  scheduler::message* m = self.allocate_message(arguments.size());
  if (!arguments.empty()) std::memcpy(m->payload(), arguments.data(), arguments.size());
  const std::uint32_t record = wire::record_bytes(arguments.size());
  m->source_pe = d.source_pe;
  m->head.form = wire::payload_form::wire;
  m->head.padding = static_cast<std::uint16_t>(record - wire::granule - arguments.size());
  m->head.size.store(record, std::memory_order_relaxed);
  if (d.form == wire::payload_form::owned) d.method->drop(d.payload);
  d.form = wire::payload_form::refs;  // nothing is left there to drop
  d.release();
  d.self = &self;
  d.heap = m;
  d.form = wire::payload_form::wire;
  d.payload = m->payload();
  d.payload_bytes = arguments.size();
}

bool on_this_node(pe& self, std::uint32_t target) noexcept { return self.owner().is_local(target); }

slot& fresh_slot(pe& self) {
  slot& s = self.allocate_slot();
  s.state = scheduler::process_state::idle;
  return s;
}

void fail_gone(const scheduler::handler& h, address to, scheduler::sink* sink, pe& self) {
  const auto why = scheduler::gone_error(h, to);
  if (sink != nullptr) {
    scheduler::reply_error(self, reinterpret_cast<std::uint64_t>(sink), self.id(), false, &h, why);
  } else {
    self.failures().report_post(&h, why);
  }
}

namespace {
// It will not be executed.
void drop_message(pe& self, scheduler::message* m) noexcept {
  if (m->head.form == wire::payload_form::owned)
    reinterpret_cast<const scheduler::handler*>(m->head.handler)->drop(m->payload());
  self.release_message(m);
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

bool has_space(scheduler::channel& c, std::size_t bytes) noexcept {
  return c.try_reserve(outgoing::record_bytes(c, bytes)) != nullptr;
}

void send_wire(pe& self, scheduler::channel& c, address to, const scheduler::handler& h, scheduler::sink* sink,
               const arguments_ref& arguments) {
  outgoing out(self, c, arguments.wire_size());
  arguments.write(out.payload());
  out.send_message(to, h, sink, arguments.level());
}

void begin_call_with(pe& self, address to, scheduler::sink& k, const scheduler::handler& h, const void* const* refs,
                     std::size_t payload, const arguments_ref& arguments) {
  prepare(k, self, to, h);
  if (to.pe == self.id()) {
    slot* s = to.slot == wire::no_slot ? &fresh_slot(self) : self.find(to.slot, to.generation);
    if (s == nullptr) [[unlikely]]
      throw_gone(h, to);
    scheduler::message* m = self.allocate_message(payload);
    std::memcpy(m->payload(), refs, payload);
    m->source_pe = to.pe;
    fill(m->head, to, h, wire::payload_form::refs, &k, 0, arguments.level());
    push_call(self, *s, m, arguments.level());
    return;
  }
  self.wait_while_stopped(to);
  scheduler::channel& c = self.channel_to(to.pe);
  if (c.remote) {
    send_wire(self, c, to, h, &k, arguments);
    return;
  }
  const std::uint32_t bytes = wire::record_bytes(payload);
  wire::envelope* e = self.reserve(c, bytes);
  std::memcpy(e->payload(), refs, payload);
  fill(*e, to, h, wire::payload_form::refs, &k, static_cast<std::uint16_t>(bytes - wire::granule - payload),
       arguments.level());
  self.commit(c, bytes);
}

}  // namespace orrery::detail
