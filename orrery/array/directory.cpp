// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/directory.hpp>

#include <orrery/array/core.hpp>
#include <orrery/array/guest.hpp>
#include <orrery/array/order.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/scheduler/prefetch.hpp>
#include <orrery/scheduler/unknown_handler.hpp>
#include <orrery/transport/world.hpp>
#include <orrery/wire/exception.hpp>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include <fmt/format.h>

namespace orrery::detail {

namespace {

constexpr std::size_t piece_bytes = 16 << 10;  // at most, and no more than a record of the ring
constexpr std::uint32_t id_bits_of_pe = 14;  // arrays that one PE can have made

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
slot* route_value(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size);
slot* route_error(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size);

bool lost_piece(pe& self, const scheduler::handler& h, std::span<const std::byte> payload, std::uint32_t to,
                const scheduler::unknown_message* unknown) noexcept;

struct piece_control : control_handler {
  piece_control() noexcept : control_handler("piece", &route_piece) { lost = &lost_piece; }
};
const piece_control piece_handler;
const control_handler value_handler{"value", &route_value};
const control_handler error_handler{"error", &route_error};

slot* route_piece(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size) {
  const std::uint32_t from = d.source_pe;
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
      dispatch(self, m);
    } else if (scheduler::slot* s = self.find(whole.slot, whole.generation)) {
      self.push(*s, m);
    } else {
      self.release_message(m);
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

std::uint64_t call_of(const wire::envelope& e) noexcept { return std::uint64_t{e.generation} << 32 | e.slot; }

void complete(pe& self, scheduler::sink& s, std::exception_ptr error) noexcept {
  s.error = std::move(error);
  s.state = s.error != nullptr ? scheduler::sink::status::error : scheduler::sink::status::value;
  self.complete(s);
}

void settle_value(pe& self, scheduler::sink& s, std::span<const std::byte> value) noexcept {
  std::exception_ptr error;
  try {
    if (s.decode != nullptr) s.decode(s, value.data(), value.size());
  } catch (...) {
    error = std::current_exception();
  }
  complete(self, s, std::move(error));
}

slot* route_value(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size) {
  scheduler::sink* s = array_directory::of(self).take(call_of(e));
  if (s != nullptr) settle_value(self, *s, wire_payload(d, e, size));
  d.release();
  return nullptr;
}

slot* route_error(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size) {
  scheduler::sink* s = array_directory::of(self).take(call_of(e));
  std::exception_ptr error;
  try {
    orrery::reader r(wire_payload(d, e, size));
    const auto form = orrery::read<wire_exception>(r);
    const auto at = orrery::read<where>(r);
    error = decode_exception(form, at);
  } catch (...) {
    error = std::current_exception();
  }
  d.release();
  if (s != nullptr) complete(self, *s, std::move(error));
  return nullptr;
}

}  // namespace

void birth_handler::forget(array_core& part, cell_base&, scheduler::message* m) { part.self().release_message(m); }

slot* refuse_route(pe&, scheduler::delivery& d, const wire::envelope&, std::uint32_t) noexcept {
  d.fail(std::make_exception_ptr(bad_message(errc::unknown_handler, "a message that does not leave its PE")));
  return nullptr;
}

std::span<const std::byte> after_section(std::span<const std::byte> all, const orrery::reader& r) {
  const std::size_t end = section_end(r.position());
  if (end > all.size()) throw bad_message(errc::message_truncated, "a message of an array");
  return all.subspan(end);
}

// --- sending -------------------------------------------------------------------------------------

scheduler::message* wire_message(pe& self, const scheduler::handler& h, std::uint32_t slot, std::uint32_t generation,
                                 std::span<const std::byte> payload) {
  scheduler::message* m = self.allocate_message(payload.size());
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
  if (slot* s = d.method->route(self, d, m->head, m->head.size.load(std::memory_order_relaxed))) {
    if (m->head.kind == wire::record_kind::message) [[likely]] {
      self.push(*s, m);
    } else {
      self.push_at(m->head.kind, *s, m);
    }
  }
}

void discard(pe& self, scheduler::message* m) noexcept {
  if (m->head.form == wire::payload_form::owned)
    reinterpret_cast<const scheduler::handler*>(m->head.handler)->drop(m->payload());
  self.release_message(m);
}

namespace {
[[noreturn]] void throw_too_large(const scheduler::handler& h, std::size_t bytes) {
  throw usage_error(errc::bad_argument,
                    fmt::format("{}::{}: a message of {} bytes in its wire form: those to elements of "
                                "arrays, and values of reductions, have at most {}; send it in parts",
                                h.class_name, h.method, bytes, wire::largest_payload));
}

// As one record, or as several: a record above a quarter of the ring might never fit into it.
void send_in_pieces(pe& self, scheduler::channel& c, const scheduler::handler& h, piece_head head,
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

void tell_process(pe& self, address to, const scheduler::handler& h, std::span<const std::byte> payload) {
  send_in_pieces(self, self.links().control_channel_to(to.pe), h, {payload.size(), h.index, to.slot, to.generation, 1},
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
  send_in_pieces(self, self.links().control_channel_to(to), h, {payload.size(), h.index, slot, generation, 0, level},
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

void answer_value(pe& self, caller to, std::span<const std::byte> value) noexcept {
  if (to.call == 0) return;
  if (to.pe == self.id()) {
    if (scheduler::sink* s = array_directory::of(self).take(to.call)) settle_value(self, *s, value);
    return;
  }
  if (value.size() > wire::largest_payload) [[unlikely]] {
    try {
      throw_too_large(value_handler, value.size());
    } catch (...) {
      answer_error(self, to, nullptr, std::current_exception());
    }
    return;
  }
  tell(self, to.pe, value_handler, static_cast<std::uint32_t>(to.call), static_cast<std::uint32_t>(to.call >> 32),
       value);
}

void answer_error(pe& self, caller to, const scheduler::handler* method, std::exception_ptr why) noexcept {
  if (to.call == 0) {
    self.failures().report_post(method, std::move(why));
    return;
  }
  try {
    const where at = method != nullptr ? where{std::string(method->class_name), std::string(method->method), self.id()}
                                       : where{"(array)", "", self.id()};
    if (to.pe == self.id()) {
      if (scheduler::sink* s = array_directory::of(self).take(to.call)) complete(self, *s, as_received(why, at));
      return;
    }
    const wire_exception form = encode_exception(why);
    bytes b;
    pack_after(b, form, at);
    tell(self, to.pe, error_handler, static_cast<std::uint32_t>(to.call), static_cast<std::uint32_t>(to.call >> 32), b);
  } catch (...) {
    self.failures().report_post(method, std::current_exception());
  }
}

void report_no_arrival(pe& self, const std::string& element, const std::exception_ptr& why) noexcept {
  try {
    const wire_exception e = encode_exception(why);
    self.failures().report(fmt::format("{} is lost: it has moved to PE {}, where its serialize() threw {}",
                                       element.empty() ? "an element" : element, self.id(), e.type),
                           why);
  } catch (...) {
    self.failures().report("an element is lost that has moved here", why);
  }
}

// --- the directory -------------------------------------------------------------------------------

array_directory::array_directory(pe& self) : self_(self) { self.layers().watchers().add(*this); }

array_directory::~array_directory() {
  self_.layers().watchers().remove(*this);
  parts_.clear();
}

std::uint32_t maker_of(pe& self, std::uint32_t array) noexcept {
  const transport::world* const world = self.owner().world();
  const std::uint32_t maker = array >> id_bits_of_pe;
  return world != nullptr ? world->pe_of_alias(maker) : maker;
}

std::uint32_t array_directory::maker() {
  if (maker_) return *maker_;
  constexpr std::uint32_t makers = 1U << (32 - id_bits_of_pe);
  transport::world* const world = self_.owner().world();
  const std::uint32_t own = world != nullptr ? world->take_alias(self_.id()) : self_.id();
  if (own >= makers)
    throw world_error(errc::world_too_large, fmt::format("arrays can be made on the first {} PEs only", makers));
  maker_ = own;
  return own;
}

std::uint32_t array_directory::new_id() {
  constexpr std::uint32_t most = std::uint32_t{1} << id_bits_of_pe;
  std::uint32_t n = 0;
  if (ids_ + 1 < most) {
    n = ++ids_;
  } else if (!free_ids_.empty()) {
    n = free_ids_.front();
    free_ids_.pop_front();
  } else {
    throw world_error(errc::world_too_large, fmt::format("{} arrays that were made on PE {}", most - 1, self_.id()));
  }
  return maker() << id_bits_of_pe | n;
}

void array_directory::add(std::uint32_t id, std::unique_ptr<array_core> part) {
  array_core* p = part.get();
  p->incarnation = ++added_;
  parts_[id] = std::move(part);
  cache_[id % cache_size] = {id, p};
  // The PE that made the array may not have heard yet of a loss that this one knows of, and hears
  // of once.
  if (self_.owner().gone_nodes() != 0 && p->find_losses()) p->pes_lost();
}

void array_directory::remove(std::uint32_t id) noexcept {
  if (cache_[id % cache_size].id == id) cache_[id % cache_size] = {};
  const auto it = parts_.find(id);
  if (it == parts_.end()) return;
  const auto ended = std::move(it->second);  // while it is not found any more
  parts_.erase(it);
  if (own_streams_ != nullptr) own_streams_->forget(id);
  note_gone(id, ended->about().name);
  note_end(*ended);
  if (maker_ == id >> id_bits_of_pe) free_ids_.push_back(id & ((1U << id_bits_of_pe) - 1));
}

void array_directory::note_gone(std::uint32_t id, const std::string& name) noexcept try {
  constexpr std::size_t most = 16;
  if (gone_.size() == most) gone_.erase(gone_.begin());
  gone_.emplace_back(id, name);
} catch (const std::bad_alloc&) {  // then an error says the number
}

std::string_view array_directory::name_of_gone(std::uint32_t id) const noexcept {
  const auto it = std::ranges::find(gone_.rbegin(), gone_.rend(), id, [](const auto& g) { return g.first; });
  return it != gone_.rend() ? std::string_view(it->second) : std::string_view();
}

array_core* array_directory::find_slow(std::uint32_t id) noexcept {
  const auto it = parts_.find(id);
  if (it == parts_.end()) return nullptr;
  cache_[id % cache_size] = {id, it->second.get()};
  return it->second.get();
}

void array_directory::fetch(int step) const noexcept {
  if (step == 0) {
    scheduler::fetch_lines(this, sizeof *this / 64);
    return;
  }
  int left = fetched_parts;
  for (const cached& c : cache_) {
    if (c.part == nullptr) continue;
    c.part->fetch(step - 1);
    if (--left == 0) return;
  }
}

cell_base* array_directory::cell_of(const slot& s) const noexcept {
  const bool constructing = s.apart && !s.dying;
  if ((!s.has_object && !constructing) || s.class_number >= element_classes_.size()) return nullptr;
  const find_cell f = element_classes_[s.class_number];
  return f != nullptr ? &f(s.where_apart()) : nullptr;
}

const array_core* array_directory::part_around(const slot& s) const noexcept {
  const cell_base* c = cell_of(s);
  return c != nullptr ? c->part : nullptr;
}

std::uint64_t array_directory::begin_work(const slot& by) noexcept {
  const cell_base* c = cell_of(by);
  if (c == nullptr) return 0;
  c->part->begins();
  return std::uint64_t{c->part->incarnation} << 32 | c->part->id();
}
std::string array_directory::explain_waits() const {
  std::string text;
  for (const auto& [id, part] : parts_) text += part->explain_waits();
  return text;
}
std::string array_directory::name_of(const slot& s) const {
  const cell_base* c = cell_of(s);
  return c != nullptr ? c->part->text_of(*c) : "";
}
void array_directory::end_work(std::uint64_t number) noexcept {
  array_core* part = find(static_cast<std::uint32_t>(number));
  if (part != nullptr && part->incarnation == number >> 32) part->over();
}

array_core* array_directory::part_of_process(const slot& s) const noexcept {
  for (const auto& [id, part] : parts_)
    for (const cell_base* c : part->cells())
      if (c->process == &s) return part.get();
  return nullptr;
}

void array_directory::note_elements(std::uint32_t class_number, find_cell f) {
  if (element_classes_.size() <= class_number) element_classes_.resize(class_number + 1);
  element_classes_[class_number] = f;
}

outbox& array_directory::sender() {
  if (const scheduler::activation* a = self_.active(); a != nullptr)
    if (cell_base* c = cell_of(*a->process); c != nullptr) return c->order_of().out;
  if (own_streams_ == nullptr) own_streams_ = std::make_unique<outbox>();
  return *own_streams_;
}

}  // namespace orrery::detail
