// SPDX-License-Identifier: Apache-2.0
// Messages between PEs: as one record, or in pieces.
#include <orrery/array/detail/tell.hpp>

#include <orrery/array/detail/directory.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/scheduler/unknown_handler.hpp>

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace orrery::detail {

namespace {

constexpr std::size_t piece_bytes = 16 << 10;  // at most, and no more than a record of the ring

// One piece of a message. It says of which message in its first piece only: pieces of one PE arrive
// in order.
struct piece_head {
  std::uint64_t total = 0;  ///< 0: not the first piece
  std::uint32_t handler = 0;
  std::uint32_t slot = 0;
  std::uint32_t generation = 0;
  std::uint16_t to_process = 0;  ///< 1: it has no route, and is for the process in `slot`
  wire::record_kind level = wire::record_kind::message;
  std::uint8_t unused = 0;
};

slot* route_piece(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size);

// Routes a message that `d` describes.
void dispatch(pe& self, scheduler::message* m, scheduler::delivery& d) {
  if (slot* s = d.method->route(self, d, m->head, m->head.size.load(std::memory_order_relaxed))) {
    if (m->head.kind == wire::record_kind::message) [[likely]] {
      self.push(*s, m);
    } else {
      self.push_at(m->head.kind, *s, m);
    }
  }
}

bool lost_piece(pe& self, const scheduler::handler& h, std::span<const std::byte> payload, std::uint32_t to,
                const scheduler::unknown_message* unknown) noexcept;

struct piece_control : control_handler {
  piece_control() noexcept : control_handler("piece", &route_piece) { lost = &lost_piece; }
};
const piece_control piece_handler;

slot* route_piece(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size) {
  const std::uint32_t from = d.source_pe;
  const bool remote = d.remote;
  try {
    const auto payload = wire_payload(d, e, size);
    orrery::reader r(payload);
    const auto head = orrery::read<piece_head>(r);
    auto& p = array_directory::of(self).incomplete_from(from);
    if (head.total != 0) {
      const scheduler::handler* const h = scheduler::find_handler(head.handler);
      if ((h != nullptr && h->route == nullptr && head.to_process == 0) || !p.data.empty())
        throw bad_message(errc::message_corrupt, "a piece of a message");
      if (head.total > wire::largest_payload) throw bad_message(errc::message_corrupt, "the size of a message");
      p.total = head.total;
      p.data = pack(0, head);
    }
    const auto part = after_section(payload, r);
    p.data.insert(p.data.end(), part.begin(), part.end());
    d.release();
    if (p.data.size() - section_size < p.total) return nullptr;
    const bytes all = std::move(p.data);
    p = {};
    orrery::reader first({all.data(), all.size()});
    const auto whole = orrery::read<piece_head>(first);
    const auto payload_of_all = std::span(all).subspan(section_size);
    const scheduler::handler* const h = scheduler::find_handler(whole.handler);
    if (h == nullptr) {
      scheduler::return_unknown(self, from, whole.handler, whole.slot, 0, payload_of_all);
      return nullptr;
    }
    scheduler::message* m = wire_message(self, *h, whole.slot, whole.generation, payload_of_all);
    m->source_pe = from;
    m->head.kind = wire::level_of(whole.level);
    if (whole.to_process == 0) {
      scheduler::delivery all_of_it;
      all_of_it.load(self, *m);
      all_of_it.remote = remote;  // its form does not tell: pieces of this node are serialized, too
      dispatch(self, m, all_of_it);
    } else if (scheduler::slot* s = self.find(whole.slot, whole.generation)) {
      self.push(*s, m);
    } else {
      self.messages().release(m);
      fail_gone(*h, {self.id(), whole.slot, whole.generation}, nullptr, self);
    }
  } catch (...) {
    d.fail(std::current_exception());
  }
  return nullptr;
}

// The first piece tells of the whole message.
bool lost_piece(pe& self, const scheduler::handler&, std::span<const std::byte> payload, std::uint32_t to,
                const scheduler::unknown_message* unknown) noexcept {
  try {
    orrery::reader r(payload);
    const auto head = orrery::read<piece_head>(r);
    if (head.total == 0) return true;
    const scheduler::handler* const h = scheduler::find_handler(head.handler);
    return h != nullptr && h->lost != nullptr && h->lost(self, *h, after_section(payload, r), to, unknown);
  } catch (const error&) {  // the lost node has written there
    return false;
  }
}

// As one record, or as several: a record above a quarter of the ring might never fit into it.
void send_in_pieces(pe& self, scheduler::outbound& c, const scheduler::handler& h, piece_head head,
                    std::span<const std::byte> payload) {
  const auto name = [&](const scheduler::handler& x) {
    return c.remote ? std::uint64_t{x.index} : reinterpret_cast<std::uint64_t>(&x);
  };
  if (payload.size() > wire::largest_payload) throw_too_large(h, payload.size());
  constexpr std::size_t beside = wire::record_bytes(section_end(wire_size<piece_head>()));
  const std::size_t most = std::min<std::size_t>(piece_bytes, c.ring.max_record() - beside);
  if (payload.size() <= most) {
    self.links().send_control(c, head.level, head.slot, head.generation, 0, payload.data(), payload.size(), name(h));
    return;
  }
  for (std::size_t at = 0; at < payload.size(); at += most) {
    bytes piece = pack(0, head);
    const auto part = payload.subspan(at, std::min(most, payload.size() - at));
    piece.insert(piece.end(), part.begin(), part.end());
    self.links().send_control(c, wire::record_kind::message, 0, 0, 0, piece.data(), piece.size(), name(piece_handler));
    head = {};
  }
}

}  // namespace

std::span<const std::byte> after_section(std::span<const std::byte> all, const orrery::reader& r) {
  const std::size_t end = section_end(r.position());
  if (end > all.size()) throw bad_message(errc::message_truncated, "a message of an array");
  return all.subspan(end);
}

void throw_too_large(const scheduler::handler& h, std::size_t bytes) {
  throw usage_error(errc::bad_argument,
                    fmt::format("{}::{}: a message of {} bytes in its wire form: those to elements of "
                                "arrays, and values of reductions, have at most {}; send it in parts",
                                h.class_name, h.method, bytes, wire::largest_payload));
}

scheduler::message* wire_message(pe& self, const scheduler::handler& h, std::uint32_t slot, std::uint32_t generation,
                                 std::span<const std::byte> payload) {
  scheduler::message* m = self.messages().allocate(payload.size());
  m->source_pe = self.id();
  m->head.size.store(static_cast<std::uint32_t>(wire::granule + payload.size()), std::memory_order_relaxed);
  m->head.kind = wire::record_kind::message;
  m->head.form = wire::payload_form::wire;
  m->head.padding = 0;
  m->head.slot = slot;
  m->head.generation = generation;
  m->head.handler = reinterpret_cast<std::uint64_t>(&h);
  m->head.reply = 0;
  if (!payload.empty()) std::memcpy(m->payload(), payload.data(), payload.size());
  return m;
}

void dispatch(pe& self, scheduler::message* m) {
  scheduler::delivery d;
  d.load(self, *m);
  dispatch(self, m, d);
}

void discard(pe& self, scheduler::message* m) noexcept {
  if (m->head.form == wire::payload_form::owned)
    reinterpret_cast<const scheduler::handler*>(m->head.handler)->drop(m->payload());
  scheduler::delivery::give_back(self, *m);
}

void tell_process(pe& self, address to, const scheduler::handler& h, std::span<const std::byte> payload) {
  send_in_pieces(self, self.links().control_outbound_to(to.pe), h, {payload.size(), h.index, to.slot, to.generation, 1},
                 payload);
}

void tell(pe& self, std::uint32_t to, const scheduler::handler& h, std::uint32_t slot, std::uint32_t generation,
          std::span<const std::byte> payload, wire::record_kind level) noexcept try {
  if (to == self.id()) {
    scheduler::message* m = wire_message(self, h, slot, generation, payload);
    m->head.kind = level;
    dispatch(self, m);
    return;
  }
  send_in_pieces(self, self.links().control_outbound_to(to), h, {payload.size(), h.index, slot, generation, 0, level},
                 payload);
} catch (const node_lost&) {
  if (h.lost == nullptr || !h.lost(self, h, payload, to, nullptr))
    self.failures().report_unsent(h, to, std::current_exception());
} catch (const usage_error&) {  // who waits for it is to know why
  const scheduler::unknown_message unsent{std::current_exception(), slot};
  if (h.lost == nullptr || !h.lost(self, h, payload, to, &unsent)) self.failures().report_post(&h, unsent.why);
} catch (...) {
  self.failures().report_post(&h, std::current_exception());
}

}  // namespace orrery::detail
