// SPDX-License-Identifier: Apache-2.0
// Messages that pass on buffers.
//
// Inside a node they travel in the owned form, whose buffers are pointers. To another node they are
// bytes:
//
//     mail_head | bytes of the structure | {position, bytes} of each buffer | the structure ...
//     | the buffers ...
//
// A single buffer that lies in this node's segment has that in its headroom, so that the block is
// the message, and nothing is copied.
#include <orrery/process/function.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/scheduler/order_through_nodes.hpp>
#include <orrery/task/internal/mail.hpp>
#include <orrery/task/internal/state.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>
#include <utility>

namespace orrery::task_detail {

using scheduler::message;
using scheduler::pe;
using scheduler::slot;
using wire::payload_form;

namespace {

constexpr std::size_t aligned(std::size_t n, std::size_t to) noexcept { return (n + to - 1) / to * to; }

struct place {
  std::uint64_t position;  // in the payload
  std::uint64_t bytes;
};

// Where what stands in the payload.
struct packing {
  std::size_t structure;
  std::size_t end_of_structure;
  std::size_t first_buffer;
  std::size_t all;

  packing(std::size_t bytes, std::span<const orrery_buffer> buffers) noexcept {
    structure = aligned(sizeof(mail_head) + sizeof(std::uint64_t) + buffers.size() * sizeof(place), 16);
    end_of_structure = structure + bytes;
    first_buffer = aligned(end_of_structure, 64);
    all = first_buffer;
    for (const orrery_buffer& b : buffers) all = aligned(all, 64) + b.size;
  }
};

// All but the bytes of the buffers, the first of which is at `first`.
void write_front(std::byte* to, const mail_head& head, std::uint64_t bytes, const mail_writer& writer,
                 std::span<const orrery_buffer> buffers, std::size_t first) noexcept {
  std::memcpy(to, &head, sizeof head);
  std::byte* at = to + sizeof head;
  std::memcpy(at, &bytes, sizeof bytes);
  at += sizeof bytes;
  std::size_t position = first;
  for (const orrery_buffer& b : buffers) {
    position = aligned(position, 64);
    const place p{position, b.size};
    std::memcpy(at, &p, sizeof p);
    at += sizeof p;
    position += b.size;
  }
  writer.write(to + packing(bytes, buffers).structure);
}

std::uint16_t pages_of(std::size_t bytes, std::span<const orrery_buffer> buffers) noexcept {
  for (const orrery_buffer& b : buffers) bytes += b.size;
  return wire::pages_beside(bytes);
}

// The message in the owned form, when nothing can park or throw any more: from then on the buffers
// are no longer the sender's.
class owned_form {
 public:
  owned_form(buffer_table& table, const mail_head& head, std::size_t bytes, const mail_writer& writer,
             std::span<const orrery_buffer> buffers)
      : table_(table),
        buffers_(buffers),
        mail_{head, wire::make_unique_definit<std::byte[]>(bytes), bytes, std::vector<mailed_buffer>(buffers.size())} {
    writer.write(mail_.bytes.get());
    if (!buffer_memory::is_checked()) return;
    for (std::size_t i = 0; i < buffers.size(); ++i)
      mail_.buffers[i].memory = table.at(*scheduler::current_pe, buffers[i], "orrery_send").memory.in_other_pages();
  }
  void move_to(std::byte* payload) noexcept {
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      if (buffer_memory::is_checked()) {
        table_.retire(buffers_[i]);
      } else {
        mail_.buffers[i].memory = table_.take_out(buffers_[i]);
      }
    }
    new (payload) large_mail(std::move(mail_));
  }

 private:
  buffer_table& table_;
  std::span<const orrery_buffer> buffers_;
  large_mail mail_;
};

sent send_within(pe& self, address to, owned_form& form, std::uint16_t pages, bool may_wait) {
  slot* s = self.find(to.slot, to.generation);
  if (s == nullptr) return sent::gone;
  if (self.flow().over_limit(*s)) {
    if (!may_wait) return sent::full;
    self.flow().wait_for_room(*s);
    s = self.find(to.slot, to.generation);
    if (s == nullptr) return sent::gone;
  }
  const std::uint32_t record = wire::record_bytes(sizeof(large_mail));
  message* const m = self.messages().allocate(record - wire::granule);
  m->source_pe = to.pe;
  m->head.size.store(record, std::memory_order_relaxed);
  detail::write_envelope(m->head, to, mail_handler, payload_form::owned, nullptr, pages);
  form.move_to(m->payload());
  self.push(*s, m);
  return sent::yes;
}

sent send_to_other_pe(pe& self, scheduler::outbound& c, address to, owned_form& form, std::uint16_t pages,
                      bool may_wait) {
  const std::uint32_t record = wire::record_bytes(sizeof(large_mail)) + wire::ring_surcharge(pages, c.ring.capacity());
  wire::envelope* const e = may_wait ? self.reserve(c, record) : c.try_reserve(record);
  if (e == nullptr) return sent::full;
  form.move_to(e->payload());
  detail::write_envelope(*e, to, mail_handler, payload_form::owned, nullptr, pages);
  self.commit(c, record);
  return sent::yes;
}

// The block of the only buffer becomes the message.
sent send_block(pe& self, scheduler::outbound& c, address to, const mail_head& head, std::size_t bytes,
                const mail_writer& writer, const orrery_buffer& b, bool may_wait) {
  const std::size_t all = buffer_memory::headroom + b.size;
  const std::uint32_t record = detail::outgoing::record_bytes(c, all);
  wire::envelope* const e = may_wait ? self.reserve(c, record) : c.try_reserve(record);
  if (e == nullptr) return sent::full;
  buffer_table& table = task_state::of(self).buffers;
  buffer_memory& memory = table.at(self, b, "orrery_send").memory;
  write_front(memory.block(), head, bytes, writer, {&b, 1}, buffer_memory::headroom);
  const wire::block_ref ref{memory.lend(self, to.pe), all};
  table.drop(b.id_);
  std::memcpy(e->payload(), &ref, sizeof ref);
  detail::write_envelope(*e, to, mail_handler, payload_form::block, nullptr, wire::pages_beside(all));
  e->handler = mail_handler.index;
  ++c.blocks_out;
  scheduler::order_before_other_nodes();
  self.commit(c, record);
  return sent::yes;
}

}  // namespace

sent send_mail(pe& self, address to, const mail_head& head, std::size_t bytes, const mail_writer& writer, bool may_wait,
               std::span<const orrery_buffer> buffers) {
  if (!to) throw usage_error(errc::null_pointer, "tasks::send");
  buffer_table& table = task_state::of(self).buffers;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    (void)table.at(self, buffers[i], "orrery_send");
    if (std::ranges::any_of(buffers.first(i), [&](const orrery_buffer& b) { return b.id_ == buffers[i].id_; }))
      throw usage_error(errc::bad_argument, "orrery_send: a message with one buffer twice; each has one owner");
  }
  if (to.pe != self.id()) {
    if (may_wait) {
      self.wait_while_stopped(to);
    } else if (self.is_stopped(to)) {
      return sent::full;
    }
    scheduler::outbound& c = self.outbound_to(to.pe);
    if (c.remote) {
      const packing p(bytes, buffers);
      if (buffers.size() == 1 && p.first_buffer <= buffer_memory::headroom &&
          table.at(self, buffers[0], "orrery_send").memory.is_block())
        return send_block(self, c, to, head, bytes, writer, buffers[0], may_wait);
      detail::outgoing out(self, c, p.all, may_wait);
      if (!out.has_room()) return sent::full;
      write_front(out.payload().data(), head, bytes, writer, buffers, p.first_buffer);
      std::size_t at = p.first_buffer;
      for (const orrery_buffer& b : buffers) {
        at = aligned(at, 64);
        if (b.size != 0) std::memcpy(out.payload().data() + at, table.at(self, b, "orrery_send").memory.data(), b.size);
        at += b.size;
      }
      out.send_message(to, mail_handler, nullptr);
      for (const orrery_buffer& b : buffers) table.retire(b);
      return sent::yes;
    }
    owned_form form(table, head, bytes, writer, buffers);
    return send_to_other_pe(self, c, to, form, pages_of(bytes, buffers), may_wait);
  }
  owned_form form(table, head, bytes, writer, buffers);
  return send_within(self, to, form, pages_of(bytes, buffers), may_wait);
}

namespace {

// The places of the buffers, checked; another node wrote them, and may write there still. They
// follow each other, so that they have no more bytes in all than the payload.
std::optional<std::vector<place>> places_in(const std::byte* payload, std::size_t size, std::uint32_t count,
                                            std::uint64_t& structure_bytes) {
  constexpr std::size_t table = sizeof(mail_head) + sizeof(std::uint64_t);
  if (size < table || count > (size - table) / sizeof(place)) return std::nullopt;
  std::memcpy(&structure_bytes, payload + sizeof(mail_head), sizeof structure_bytes);
  const std::size_t structure = aligned(table + count * sizeof(place), 16);
  if (structure > size || structure_bytes > size - structure) return std::nullopt;
  std::vector<place> places(count);
  std::memcpy(places.data(), payload + table, count * sizeof(place));
  std::uint64_t end = structure + structure_bytes;
  for (const place& p : places) {
    if (p.position < end || p.position > size || p.bytes > size - p.position || p.position % 64 != 0)
      return std::nullopt;
    end = p.position + p.bytes;
  }
  return places;
}

}  // namespace

message* with_buffers_apart(pe& self, message& m) {
  scheduler::delivery d;
  d.load(self, m);
  mail_head head;
  std::memcpy(&head, d.payload, sizeof head);
  std::uint64_t bytes = 0;
  const auto places = places_in(d.payload, d.payload_bytes, head.buffers, bytes);
  if (!places) return nullptr;
  large_mail mail{head, wire::make_unique_definit<std::byte[]>(bytes), bytes,
                  std::vector<mailed_buffer>(places->size())};
  const std::size_t structure = aligned(sizeof(mail_head) + sizeof(std::uint64_t) + places->size() * sizeof(place), 16);
  std::memcpy(mail.bytes.get(), d.payload + structure, bytes);
  const bool in_place = d.form == payload_form::block && places->size() == 1 && !buffer_memory::is_checked();
  std::size_t all = bytes;
  for (std::size_t i = 0; i < places->size(); ++i) {
    const place& p = (*places)[i];
    all += p.bytes;
    if (in_place) continue;
    mail.buffers[i].memory = buffer_memory::on_heap(p.bytes);
    if (p.bytes != 0) std::memcpy(mail.buffers[i].memory.data(), d.payload + p.position, p.bytes);
  }
  const std::uint32_t record = wire::record_bytes(sizeof(large_mail));
  message* const made = self.messages().allocate(record - wire::granule);
  made->source_pe = m.source_pe;
  made->head.size.store(record, std::memory_order_relaxed);
  detail::write_envelope(made->head, {}, mail_handler, payload_form::owned, nullptr, wire::pages_beside(all));
  if (in_place) {
    const place& p = places->front();
    mail.buffers[0].memory = buffer_memory::guest(self, m.source_pe, d.block, d.payload + p.position, p.bytes);
  } else {
    d.heap = nullptr;
    d.release();  // the block, if there is one
  }
  new (made->payload()) large_mail(std::move(mail));
  return made;
}

}  // namespace orrery::task_detail
