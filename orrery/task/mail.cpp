// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/function.hpp>
#include <orrery/task/internal/mail.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace orrery::task_detail {

using scheduler::message;
using scheduler::pe;
using scheduler::slot;
using wire::payload_form;

namespace {

constexpr std::size_t largest_in_ring = 4096;

void relocate_large(void* to, void* from) {
  auto* old = static_cast<large_mail*>(from);
  new (to) large_mail(std::move(*old));
  old->~large_mail();
}
void drop_large(void* payload) { static_cast<large_mail*>(payload)->~large_mail(); }

std::uint16_t padding_of(std::size_t payload) noexcept {
  return static_cast<std::uint16_t>(wire::record_bytes(payload) - wire::granule - payload);
}

void write_to(std::byte* at, const mail_head& head, const mail_writer& writer) noexcept {
  std::memcpy(at, &head, sizeof head);
  writer.write(at + sizeof head);
}

void push_within(pe& self, slot& s, address to, const mail_head& head, std::size_t bytes, const mail_writer& writer) {
  const std::size_t payload = sizeof head + bytes;
  const std::uint32_t record = wire::record_bytes(payload);
  message* m = self.messages().allocate(record - wire::granule);
  write_to(m->payload(), head, writer);
  m->source_pe = to.pe;
  m->head.size.store(record, std::memory_order_relaxed);
  detail::write_envelope(m->head, to, mail_handler, payload_form::wire, nullptr, padding_of(payload));
  self.push(s, m, message::charge_of(m->bytes, 0));
}

sent send_within(pe& self, address to, const mail_head& head, std::size_t bytes, const mail_writer& writer,
                 bool may_wait) {
  slot* s = self.find(to.slot, to.generation);
  if (s == nullptr) return sent::gone;
  if (self.flow().over_limit(*s)) [[unlikely]] {
    if (!may_wait) return sent::full;
    self.flow().wait_for_room(*s);
    s = self.find(to.slot, to.generation);
    if (s == nullptr) return sent::gone;
  }
  push_within(self, *s, to, head, bytes, writer);
  return sent::yes;
}

sent send_to_other_pe(pe& self, scheduler::outbound& c, address to, const mail_head& head, std::size_t bytes,
                      const mail_writer& writer, bool may_wait) {
  const std::size_t payload = sizeof head + bytes;
  if (payload <= largest_in_ring) {
    const std::uint32_t record = wire::record_bytes(payload);
    wire::envelope* e = may_wait ? self.reserve(c, record) : c.try_reserve(record);
    if (e == nullptr) return sent::full;
    write_to(e->payload(), head, writer);
    detail::write_envelope(*e, to, mail_handler, payload_form::wire, nullptr, padding_of(payload));
    self.commit(c, record);
    return sent::yes;
  }
  large_mail large{head, wire::make_unique_definit<std::byte[]>(bytes), bytes, {}};
  writer.write(large.bytes.get());
  const std::uint16_t pages = wire::pages_beside(bytes);
  const std::uint32_t record = wire::record_bytes(sizeof(large_mail)) + wire::ring_surcharge(pages, c.ring.capacity());
  wire::envelope* e = may_wait ? self.reserve(c, record) : c.try_reserve(record);
  if (e == nullptr) return sent::full;
  new (e->payload()) large_mail(std::move(large));
  detail::write_envelope(*e, to, mail_handler, payload_form::owned, nullptr, pages);
  self.commit(c, record);
  return sent::yes;
}

}  // namespace

const scheduler::handler mail_handler{"task",          "message",   "orrery task message 1", &give_to_object,
                                      &relocate_large, &drop_large, sizeof(large_mail),      true};

sent send_mail(pe& self, address to, const mail_head& head, std::size_t bytes, const mail_writer& writer,
               bool may_wait) {
  if (!to) throw usage_error(errc::null_pointer, "tasks::send");
  if (bytes > wire::largest_payload - sizeof head)
    throw usage_error(errc::bad_argument, fmt::format("a message of {} bytes; the most is {}: send it in pieces", bytes,
                                                      wire::largest_payload - sizeof head));
  if (to.pe == self.id()) return send_within(self, to, head, bytes, writer, may_wait);
  if (may_wait) {
    self.wait_while_stopped(to);
  } else if (self.is_stopped(to)) {
    return sent::full;
  }
  scheduler::outbound& c = self.outbound_to(to.pe);
  if (!c.remote) return send_to_other_pe(self, c, to, head, bytes, writer, may_wait);
  detail::outgoing out(self, c, sizeof head + bytes, may_wait);
  if (!out.has_room()) return sent::full;
  write_to(out.payload().data(), head, writer);
  out.send_message(to, mail_handler, nullptr);
  return sent::yes;
}

void put_mail(pe& self, address to, const mail_head& head, std::size_t bytes, const mail_writer& writer) {
  if (slot* const s = self.find(to.slot, to.generation); s != nullptr) push_within(self, *s, to, head, bytes, writer);
}

mail_view view_of(message& m) noexcept {
  if (m.head.form == payload_form::owned) {
    auto& large = *std::launder(reinterpret_cast<large_mail*>(m.payload()));
    return {&large.head, large.bytes.get(), large.size, large.buffers};
  }
  return {reinterpret_cast<const mail_head*>(m.payload()),
          m.payload() + sizeof(mail_head),
          m.head.payload_bytes() - sizeof(mail_head),
          {}};
}

namespace {

// A message whose bytes lie in a block of its sender's node, which is given back: its receiver may
// change what it gets, and keep it.
message* copy_of_block(pe& self, message& m) {
  scheduler::delivery d;
  d.load(self, m);
  const std::uint32_t record = wire::record_bytes(d.payload_bytes);
  message* copy = self.messages().allocate(record - wire::granule);
  copy->source_pe = m.source_pe;
  copy->head.size.store(record, std::memory_order_relaxed);
  detail::write_envelope(copy->head, {}, mail_handler, payload_form::wire, nullptr, padding_of(d.payload_bytes));
  std::memcpy(copy->payload(), d.payload, d.payload_bytes);
  d.heap = nullptr;
  d.release();  // the block
  return copy;
}

// The task can be given its bytes as they are.
bool lies_ready(message& m) noexcept {
  if (m.head.form == payload_form::owned) return true;
  return m.head.form == payload_form::wire && m.head.payload_bytes() >= sizeof(mail_head) &&
         reinterpret_cast<const mail_head*>(m.payload())->buffers == 0;
}
// The head of one that does not; nothing if it has none, or no sender of this kind made it. Another
// node says how much there is: without buffers that is copied into one message.
std::optional<mail_head> head_of(pe& self, message& m) noexcept {
  scheduler::delivery d;
  d.load(self, m);
  if (d.payload == nullptr || d.payload_bytes < sizeof(mail_head)) return std::nullopt;
  mail_head head;
  std::memcpy(&head, d.payload, sizeof head);
  if (head.buffers == 0 && d.payload_bytes > wire::largest_payload) return std::nullopt;
  return head;
}
message* ready_copy(pe& self, message& m, const mail_head& head) {
  return head.buffers != 0 ? with_buffers_apart(self, m) : copy_of_block(self, m);
}

}  // namespace

message* find_mail(pe& self, slot& s, const std::uint64_t* tag, bool take) {
  message* found = nullptr;
  message* made = nullptr;
  s.search([&](message* before, message* m) {
    if (m->head.handler != reinterpret_cast<std::uint64_t>(&mail_handler)) [[unlikely]] {
      detail::check_destroyed(self, s, before, m);
      return false;
    }
    if (!lies_ready(*m)) [[unlikely]] {
      const auto head = head_of(self, *m);
      if (head && tag != nullptr && head->tag != *tag) return false;
      made = head ? ready_copy(self, *m, *head) : nullptr;
      if (made == nullptr) return false;  // another node's nonsense; nobody asks for it
      s.charge -= m->charge();
      (void)s.unlink_after(before);
      self.messages().release(m);
      found = made;  // in the place of the other, whether it is taken or not
      return true;
    }
    if (tag != nullptr && view_of(*m).head->tag != *tag) return false;
    found = m;
    if (take) {
      s.charge -= m->charge();
      (void)s.unlink_after(before);
    }
    return true;
  });
  if (made != nullptr && !take) {
    s.charge += made->charge();
    s.push_front(made);
  }
  if (found != nullptr && s.has_extra) [[unlikely]]
    self.flow().made_room_if_low(s);
  return found;
}

message* take_delivered(pe& self, scheduler::delivery& d) {
  message* m = std::exchange(d.heap, nullptr);
  if (m == nullptr) {  // it lies in a ring, in another form than `wire`: the handler has `views`
    const std::uint32_t record = wire::record_bytes(std::max(sizeof(large_mail), sizeof(wire::block_ref)));
    m = self.messages().allocate(record - wire::granule);
    m->source_pe = d.source_pe;
    m->head.size.store(record, std::memory_order_relaxed);
    detail::write_envelope(m->head, {}, mail_handler, d.form, nullptr, 0);
    if (d.form == payload_form::owned) {
      relocate_large(m->payload(), d.payload);
    } else {
      const wire::block_ref ref{d.block, d.payload_bytes};
      std::memcpy(m->payload(), &ref, sizeof ref);
    }
    d.leave_ring();
  }
  d.form = payload_form::refs;  // nothing is left there to drop
  d.payload = nullptr;
  if (lies_ready(*m)) return m;
  const auto head = head_of(self, *m);
  message* const made = head ? ready_copy(self, *m, *head) : nullptr;
  if (made == nullptr) {
    scheduler::delivery::give_back(self, *m);
    throw bad_message(errc::message_corrupt, "orrery_send");
  }
  self.messages().release(m);
  return made;
}

void release_mail(pe& self, message& m) noexcept {
  if (m.head.form == payload_form::owned) drop_large(m.payload());
  self.messages().release(&m);
}

}  // namespace orrery::task_detail
