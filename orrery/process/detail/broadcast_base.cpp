// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/detail/broadcast_base.hpp>

#include <orrery/wire/exception.hpp>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace orrery::detail {

std::exception_ptr message_of_another_pe() {
  return std::make_exception_ptr(bad_message(errc::unknown_handler, "a message that does not leave its PE"));
}

broadcast_base::broadcast_base(group_part& p, const scheduler::handler& h, const scheduler::handler& member) noexcept
    : part(&p), method(&h), member_method(&member) {
  dropped.of = this;
  dropped.method = &h;
  dropped.on_done = [](pe& self, scheduler::sink& s) {
    broadcast_base& b = *static_cast<drop_sink&>(s).of;
    std::size_t i = 0;
    while (i + 1 < b.part->members().size() && b.part->find(i) != nullptr) ++i;
    if (!b.forgives) b.fail(i, std::exchange(s.error, nullptr));
    b.one_done(self);
  };
}

broadcast_base::~broadcast_base() {
  kept.release();
  if (left == 0) return;  // not in the list any more
  if (previous != nullptr) {
    previous->next = next;
  } else if (part->outstanding == this) {
    part->outstanding = next;
  }
  if (next != nullptr) next->previous = previous;
}

void broadcast_base::keep(scheduler::delivery& d) noexcept {
  d.leave_ring();
  kept = d;
  d.heap = nullptr;
  d.payload = nullptr;
}

void broadcast_base::fan_out(pe& self, std::uint32_t argument_bytes, bool constructs) noexcept {
  constexpr std::size_t message_bytes = 64;
  births = constructs;
  // Parts end before what waits until their PE is idle does.
  if (level == wire::record_kind::background && self.shutdown().stage() != scheduler::shutdown_stage::running)
    level = wire::record_kind::message;
  next = part->outstanding;
  if (next != nullptr) next->previous = this;
  part->outstanding = this;
  const std::size_t n = part->members().size();
  charged = static_cast<std::uint32_t>(
      std::min<std::size_t>((n * message_bytes + argument_bytes) / scheduler::charge_unit, 1 << 24));
  if (slot* s = self.find(part->at().slot, part->at().generation)) s->charge += charged;
  left = static_cast<std::uint32_t>(n) + 1;
  for (std::size_t i = 0; i < n; ++i) {
    slot* s = part->find(i);
    if (s == nullptr) {
      if (!forgives)
        fail(i, std::make_exception_ptr(process_gone(fmt::format("{}::{} at member {} of the group", method->class_name,
                                                                 method->method, part->members()[i].rank))));
      --left;
      continue;
    }
    scheduler::message* m = nullptr;
    try {
      m = self.messages().allocate(sizeof(message_payload));
    } catch (const std::bad_alloc&) {
      fail(i, std::current_exception());
      if (constructs) self.free_slot(*s);
      --left;
      continue;
    }
    const message_payload payload{this, i};
    std::memcpy(m->payload(), &payload, sizeof payload);
    m->source_pe = self.id();
    write_envelope(m->head, self.address_of(*s), *member_method, wire::payload_form::refs, &dropped, 0);
    if (constructs) {
      // Before what peers that were constructed sooner have sent.
      s->push_front(m);
      s->charge += m->charge();
      self.make_runnable(*s);
    } else if (level != wire::record_kind::message) {
      self.push_at(level, *s, m);
    } else {
      self.push(*s, m);
    }
  }
  one_done(self);
}

void broadcast_base::fail(std::size_t index, std::exception_ptr why) noexcept {
  std::uint32_t rank = part->members()[index].rank;
  if (births && part->is_broken() && is_process_gone(why)) rank |= group_data::after_another;
  if (rank >= failed) return;
  failed = rank;
  error = as_received(why, scheduler::where_is(method, here_pe().id()));
}

namespace {

void end_part(pe& self, slot& s) noexcept {
  if (s.depth == 0) {
    self.destroy(s);
  } else {  // it is handing something on: when it is done
    s.dying = true;
  }
}

}  // namespace

void broadcast_base::one_done(pe& self) noexcept {
  self.order().give(this);
  if (--left != 0) return;
  self.order().take(this);
  self.order().forget(this);
  (previous != nullptr ? previous->next : part->outstanding) = next;
  if (next != nullptr) next->previous = previous;
  const address at = part->at();
  if (slot* s = self.find(at.slot, at.generation)) {
    s->charge -= charged;
    if (s->has_extra) self.flow().made_room_if_low(*s);
  }
  if (ends_part) {
    part->ending = true;
    // A member of a reentrant class may wait in a collective, whose part ends before it.
    if (part->arrivals() != nullptr) try {
        part->broken(part->number(), std::make_exception_ptr(process_gone(verbatim, "the group was destroyed")));
      } catch (const std::exception&) {  // no memory
        part->broken(part->number(), std::current_exception());
      }
  }
  if (failed != group_data::none || part->last_failure.method != nullptr) [[unlikely]]
    note_failure();
  answer(self);
  if (const group_part* p = find_part(self, at.slot, at.generation);
      p != nullptr && p->ending && p->outstanding == nullptr)
    end_part(self, *self.find(at.slot, at.generation));
}

void broadcast_base::note_failure() noexcept {
  part->last_failure = {};
  if (failed != group_data::none && !births) part->last_failure = {method, failed, error, part->number()};
}

void broadcast_base::forget_messages(pe& self) noexcept {
  for (std::size_t i = 0; i < part->members().size(); ++i) {
    slot* s = part->find(i);
    if (s == nullptr) continue;
    const auto forget = [&](scheduler::message* before, scheduler::message* m) {
      message_payload payload{};
      if (m->head.handler == reinterpret_cast<std::uint64_t>(member_method))
        std::memcpy(&payload, m->payload(), sizeof payload);
      if (payload.of != this) return false;
      self.messages().release(s->unlink_after(before));
      return true;
    };
    while (s->search(forget)) {
    }
  }
}

void broadcast_base::run_member(pe& self, slot& s, scheduler::delivery& d) {
  if (d.remote) {
    d.fail(message_of_another_pe());
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

}  // namespace orrery::detail
