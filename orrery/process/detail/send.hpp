// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/detail/arguments_ref.hpp>
#include <orrery/process/detail/call_errors.hpp>
#include <orrery/process/detail/outgoing.hpp>
#include <orrery/wire/serialize.hpp>

#include <span>
#include <type_traits>
#include <utility>

// Sending a message to a process, wherever that is.
namespace orrery::detail {

[[nodiscard]] bool on_this_node(pe& self, std::uint32_t target) noexcept;
/// A slot for a message to the PE itself.
[[nodiscard]] slot& fresh_slot(pe& self);
/// Appends a call to the mailbox of a process of this PE; throws deadlock_error instead if it could
/// never be executed.
void push_call(pe& self, slot& s, scheduler::message* m, wire::record_kind level = wire::record_kind::message);

/// Writes all of a record's envelope but its size.
inline void write_envelope(wire::envelope& e, address to, const scheduler::handler& h, wire::payload_form form,
                           scheduler::sink* sink, std::uint16_t padding,
                           wire::record_kind level = wire::record_kind::message) noexcept {
  e.kind = level;
  e.form = form;
  e.padding = padding;
  // Kept in a register: GCC 12 would store `to` on the stack in parts, and load two of them as one
  // to store them here; a load that spans two stores waits until both have left the store buffer, 5
  // ns.
  std::uint32_t slot_number = to.slot;
  asm("" : "+r"(slot_number));
  e.slot = slot_number;
  e.generation = to.generation;
  e.handler = reinterpret_cast<std::uint64_t>(&h);
  e.reply = reinterpret_cast<std::uint64_t>(sink);
}
/// Writes into a sink whose result it waits for.
inline void prepare(scheduler::sink& k, pe& self, address to, const scheduler::handler& h) noexcept {
  k.home = self.id();
  k.target = to;
  k.method = &h;
  k.caller = self.active() != nullptr ? self.active()->process : nullptr;
}

/// The pages that arguments hold in memory of their own, as their wire form says; 0 for what has
/// none or is not known.
template <class P>
[[nodiscard]] std::size_t bytes_beside(const P& argument) {
  if constexpr (std::is_trivially_copyable_v<P> || !orrery::serializable<P>) {
    return 0;
  } else {
    return orrery::wire_size(argument);
  }
}
template <class... P>
[[nodiscard]] std::uint16_t pages_beside(const P&... arguments) {
  return wire::pages_beside((std::size_t{0} + ... + bytes_beside(arguments)));
}

/// Stops the compiler with a sentence if an argument cannot travel.
template <class... P>
consteval void require_sendable() {
  static_assert((orrery::serializable<P> && ...),
                "orrery: an argument of this call cannot be sent to another node: give its class "
                "`template <class A> void serialize(A& a)`");
}
/// The arguments of one message, for code that the compiler makes anew for their types: as
/// arguments_ref, but its functions are known, and can be made inline.
template <class Size, class Write, class Move, class Pages>
struct inline_arguments {
  std::uint32_t owned;
  const Size& wire_size;
  const Write& write;
  const Move& move;
  const Pages& pages;

  [[nodiscard]] std::uint32_t owned_bytes() const noexcept { return owned; }
  [[nodiscard]] static constexpr wire::record_kind level() noexcept { return wire::record_kind::message; }
};
template <class Size, class Write, class Move, class Pages>
inline_arguments(std::uint32_t, const Size&, const Write&, const Move&, const Pages&)
    -> inline_arguments<Size, Write, Move, Pages>;

/// Sends a message to another node. `Arguments`: arguments_ref or inline_arguments. May park.
/// False: it would have to, and `may_wait` is false. Throws node_lost, what a serialize() throws.
template <class Arguments>
bool send_wire(pe& self, scheduler::outbound& c, address to, const scheduler::handler& h, scheduler::sink* sink,
               const Arguments& arguments, bool may_wait = true) {
  outgoing out(self, c, arguments.wire_size(), may_wait);
  if (!out.has_room()) return false;
  arguments.write(out.payload());
  out.send_message(to, h, sink, arguments.level());
  return true;
}

/// Sends a message whose payload owns its arguments to another PE. False: it would have to wait,
/// and `may_wait` is false. Throws node_lost, but reports a lost post.
template <class Arguments>
bool send_to_other_pe(const scheduler::handler& h, pe& self, address to, scheduler::sink* sink, bool may_wait,
                      const Arguments& arguments) {
  try {
    if (may_wait) {
      self.wait_while_stopped(to);
    } else if (self.is_stopped(to)) {
      return false;
    }
    scheduler::outbound& c = self.outbound_to(to.pe);
    if (c.remote) return send_wire(self, c, to, h, sink, arguments, may_wait);
    const std::uint16_t pages = arguments.pages();
    const std::uint32_t bytes =
        wire::record_bytes(arguments.owned_bytes()) + wire::ring_surcharge(pages, c.ring.capacity());
    wire::envelope* e = may_wait ? self.reserve(c, bytes) : c.try_reserve(bytes);
    if (e == nullptr) return false;
    arguments.move(e->payload());
    write_envelope(*e, to, h, wire::payload_form::owned, sink, pages, arguments.level());
    self.commit(c, bytes);
  } catch (const node_lost&) {
    if (sink != nullptr) throw;
    self.failures().report_unsent(h, to.pe, std::current_exception());
  }
  return true;
}

/// The process of this PE that a message is for, once its mailbox has room. Null: it is gone, or,
/// if `full` is true then, it has no room and `may_wait` is false. May park, and throws then what
/// ends the wait: nothing was sent.
[[nodiscard]] inline slot* find_with_room(pe& self, address to, bool may_wait, bool& full) {
  slot* s = self.find(to.slot, to.generation);
  if (s != nullptr && self.flow().over_limit(*s)) [[unlikely]] {
    full = !may_wait;
    if (full) return nullptr;
    self.flow().wait_for_room(*s);
    s = self.find(to.slot, to.generation);
  }
  return s;
}

/// begin_call when all is known: `refs` point to the arguments.
void begin_call_with(pe& self, address to, scheduler::sink& k, const scheduler::handler& h, const void* const* refs,
                     std::size_t payload, const arguments_ref& arguments);

/// Sends a one-way or asynchronous message whose payload owns its arguments. `sink` null: one way.
/// May park while the destination is full; with `may_wait` false it returns false instead, having
/// sent nothing. A one-way message to a lost node is reported, as are those whose process is gone;
/// others throw node_lost. `h`: Handler::instance, or another one with the functions of Handler.
template <class Handler, class... P>
bool send_owned_as(const scheduler::handler& h, pe& self, address to, scheduler::sink* sink, bool may_wait,
                   P&&... arguments) {
  const auto pages = [&] { return pages_beside(arguments...); };
  if (to.pe != self.id()) {
    require_sendable<std::remove_cvref_t<P>...>();
    const auto size = [&] { return orrery::wire_size(std::as_const(arguments)...); };
    const auto write = [&](std::span<std::byte> at) {
      orrery::writer w(at);
      (orrery::write(w, std::as_const(arguments)), ...);
    };
    const auto move = [&](void* at) { Handler::make_owned(at, std::forward<P>(arguments)...); };
    return send_to_other_pe(h, self, to, sink, may_wait,
                            inline_arguments{sizeof(typename Handler::owned), size, write, move, pages});
  }
  bool full = false;
  slot* const s = to.slot == wire::no_slot ? &fresh_slot(self) : find_with_room(self, to, may_wait, full);
  if (s == nullptr) [[unlikely]] {
    if (!full) fail_gone(h, to, sink, self);
    return !full;
  }
  const std::uint16_t beside = pages();
  scheduler::message* m = nullptr;
  try {
    m = Handler::make_message(self, std::forward<P>(arguments)...);
  } catch (...) {
    if (to.slot == wire::no_slot) self.free_slot(*s);
    throw;
  }
  m->source_pe = to.pe;
  write_envelope(m->head, to, h, wire::payload_form::owned, sink, beside);
  self.push(*s, m, scheduler::message::charge_of(m->bytes, beside));
  return true;
}

template <class Handler, class... P>
bool send_owned(pe& self, address to, scheduler::sink* sink, bool may_wait, P&&... arguments) {
  return send_owned_as<Handler>(Handler::instance, self, to, sink, may_wait, std::forward<P>(arguments)...);
}

/// Sends a call whose caller waits for it before the arguments end: inside the node only pointers
/// to them travel.
template <class... P>
void begin_call_at(wire::record_kind level, const scheduler::handler& h, pe& self, address to, scheduler::sink& k,
                   P&&... arguments) {
  const void* const refs[sizeof...(P) + 1] = {static_cast<const void*>(std::addressof(arguments))...};
  require_sendable<std::remove_cvref_t<P>...>();
  const auto size = [&] { return orrery::wire_size(std::as_const(arguments)...); };
  const auto write = [&](orrery::writer& w) { (orrery::write(w, std::as_const(arguments)), ...); };
  const auto stays = [](void*) {};
  begin_call_with(self, to, k, h, refs, sizeof...(P) * sizeof(void*), arguments_ref(size, write, stays, 0, 0, level));
}
template <class Handler, class... P>
void begin_call(pe& self, address to, scheduler::sink& k, P&&... arguments) {
  begin_call_at(wire::record_kind::message, Handler::instance, self, to, k, std::forward<P>(arguments)...);
}

/// Sends a call and returns when the result has arrived in `k`.
template <class Handler, class... P>
void send_call(pe& self, address to, scheduler::sink& k, P&&... arguments) {
  self.require_process();
  begin_call<Handler>(self, to, k, std::forward<P>(arguments)...);
  self.wait(k);
}

}  // namespace orrery::detail
