// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/part_life.hpp>
#include <orrery/process/end_watches.hpp>
#include <orrery/process/function.hpp>
#include <orrery/process/spawn.hpp>
#include <orrery/scheduler/reach.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstring>

// How elements move.
namespace orrery::detail {

// The migration_record of an element to another node, beside its state.
template <class Index>
struct migration_record {
  Index index{};
  sequence_number broadcasts;
  sequence_number reductions;
  std::uint32_t birth = 0;
  std::uint32_t moves = 0;
  std::uint64_t load_ns = 0;
  std::vector<pending_broadcast> waiting;
  std::vector<membership> sections;
  order_luggage order;
  typename index_cell<Index>::traffic_list sent;
};

// Ends the element of a process that runs: it is found no more, its destructor runs, and what it
// has not executed is sent on. Where other methods of it are parked, the last of them ends it, as
// with other processes: those that wait in wait_until throw process_gone.
template <class Index>
void index_part<Index>::end_element(pe& self, slot& s, cell_type& c) {
  auto* part = static_cast<index_part<Index>*>(c.part);
  part->note_ending(c.index, s);  // the part stays till then, also if the array is destroyed
  scheduler::message* mailbox = part->unregister(c);
  part->send_after(c, mailbox);
  if (s.depth == 1) {
    self.end_object(s);  // may park; what is sent meanwhile does not find it any more
  } else {
    s.dying = true;
  }
}

// News of where an element is, for one of the functions of the part that take them.
template <class Index, auto Told>
struct news_message {
  using location = typename index_part<Index>::location;
  static slot* route(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size) {
    const std::uint32_t from = d.source_pe;
    try {
      orrery::reader r(wire_payload(d, e, size));
      const auto l = orrery::read<location>(r);
      const auto i = orrery::read<Index>(r);
      array_core* part = array_directory::of(self).find(e.slot);
      d.release();
      if (part != nullptr) (static_cast<index_part<Index>*>(part)->*Told)(i, l, from);
    } catch (...) {
      d.fail(std::current_exception());
    }
    return nullptr;
  }
  inline static const control_handler instance{type_name<news_message>(), &route, nullptr,
                                               wire::type_key<news_message>()};
};
template <class Index>
using register_message = news_message<Index, &index_part<Index>::registered>;

template <class Index>
void index_part<Index>::depart(cell_type& c, std::uint32_t to) {
  slot& s = *c.process;
  if (to == self_.id()) return;
  require_on(c.index, to);
  if (s.depth > 1) throw_parked(text_of(c.index));
  if (const std::string promise = promise_of(self_, s); !promise.empty()) throw_promised(text_of(c.index), promise);
  const bool whole = scheduler::shares_node(self_, to) && !settings_.always_serialize;
  bytes state;
  if (!whole) pack_object(c, state);
  (void)self_.outbound_to(to);  // throws node_lost, while it can stay
  note_moved(self_, s);
  ++c.moves;
  take_out(c);
  remote_location& a = make_location(c.index, to, is_home(c.index));
  a.birth = c.birth;
  a.moves = c.moves;
  departed(c, to);
  s.has_object = s.apart = false;
  scheduler::message* mailbox = take_mailbox(c);
  const std::vector<pending_broadcast> broadcasts = pack_broadcasts(mailbox);
  c.process = nullptr;
  if (whole) {
    cell_type* p = &c;
    cell_type stay;  // the cell is the other PE's as soon as it is sent
    stay.index = c.index;
    bytes b;
    pack_after(b, reinterpret_cast<std::uint64_t>(p));
    if (!broadcasts.empty()) {
      b.resize(section_size);
      pack_after(b, broadcasts);
    }
    tell(self_, to, elements_.whole, id(), 0, b);
    send_after(stay, mailbox);
  } else {
    migration_record<Index> l{c.index, c.broadcasts, c.reductions, c.birth, c.moves, c.load_ns, broadcasts, {}, {}, {}};
    if (c.sections != nullptr) l.sections = *c.sections;
    if (c.order != nullptr) l.order = {std::move(c.order->out), c.order->in.all()};
    l.sent = traffic_of(c);
    bytes b = pack(0, l);
    b.insert(b.end(), state.begin(), state.end());
    tell(self_, to, elements_.packed, id(), 0, b);
    send_after(c, mailbox);
    // the destructor may park, and finds its array also if that is destroyed meanwhile
    const ending still(*this);
    c.ended = true;  // here
    end_object(c);
    free_cell(c);
  }
}

template <class Index>
slot* index_part<Index>::arrive_packed(scheduler::delivery& d, const wire::envelope& e, std::uint32_t size) {
  orrery::reader r(wire_payload(d, e, size));
  auto l = orrery::read<migration_record<Index>>(r);
  if (find_local(l.index) != nullptr) throw bad_message(errc::message_corrupt, text_of(l.index) + " arrives twice");
  cell_type* c = make_cell(l.index);
  c->broadcasts = l.broadcasts;
  c->reductions = l.reductions;
  c->birth = l.birth;
  c->moves = l.moves;
  c->load_ns = l.load_ns;
  if (!l.sections.empty()) c->sections = wire::make_unique<std::vector<membership>>(std::move(l.sections));
  if (!l.sent.empty()) c->sent.reset(new index_traffic<Index>(l.sent.begin(), l.sent.end()));
  if (!l.order.out.empty() || !l.order.in.empty()) {
    c->order_of().out = std::move(l.order.out);
    c->order->in.merge(l.order.in);
  }
  slot& s = self_.allocate_slot();
  s.state = scheduler::process_state::idle;
  s.class_number = elements_.process_class.number;
  note_class(self_, elements_.process_class);
  c->process = &s;
  place(l.index, *c);
  self_.push(s, d.detach(e, size));
  unpack_broadcasts(*c, l.waiting);
  arrived(*c);
  flush_early();
  report_arrival(*c);
  return nullptr;
}

template <class Index>
std::pair<index_cell<Index>*, std::span<const std::byte>> index_part<Index>::unpack_arrival(
    const scheduler::delivery& d) {
  const std::span<const std::byte> all{d.payload, d.payload_bytes};
  orrery::reader r(all);
  cell_type* const c = find_local(orrery::read<migration_record<Index>>(r).index);
  return {c, after_section(all, r)};
}

template <class Index>
slot* index_part<Index>::route_whole(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size,
                                     void (*end_alone)(std::uint32_t array, cell_type*)) {
  if (d.remote) return refuse_route(self, d, e, size);
  cell_type* c = nullptr;
  std::memcpy(&c, d.payload, sizeof c);
  std::vector<pending_broadcast> broadcasts;
  if (const auto all = wire_payload(d, e, size); all.size() > section_size) {
    orrery::reader r(all.subspan(section_size));
    broadcasts = orrery::read<std::vector<pending_broadcast>>(r);
  }
  const std::uint32_t array = e.slot;
  array_core* part = array_directory::of(self).find(array);
  d.release();  // its sender may write there again
  if (part != nullptr) {
    static_cast<index_part*>(part)->arrive_whole(c, broadcasts);
    return nullptr;
  }
  try {  // its destructor runs as a process
    start_function(self, [array, c, end_alone] { end_alone(array, c); });
  } catch (const std::bad_alloc&) {
    self.failures().report("an element of a destroyed array is not ended", std::current_exception());
  }
  return nullptr;
}

template <class Index>
void index_part<Index>::arrive_whole(cell_type* c, const std::vector<pending_broadcast>& broadcasts) {
  slot& s = self_.allocate_slot();
  s.state = scheduler::process_state::idle;
  s.class_number = elements_.process_class.number;
  s.set_object(reinterpret_cast<std::byte*>(c) + elements_.offset);
  c->process = &s;
  place(c->index, *c);
  if (elements_.migrated != nullptr) {
    begins();
    scheduler::message* m = wire_message(self_, *elements_.migrated, id(), 0, {});
    m->head.kind = wire::record_kind::urgent;  // so that nothing goes before it
    self_.push(s, m);
  }
  unpack_broadcasts(*c, broadcasts);
  arrived(*c);
  flush_early();
  report_arrival(*c);
}

template <class Index>
void index_part<Index>::report_arrival(const cell_type& c) {
  const std::uint32_t home = home_of(c.index);
  if (home == self_.id()) {
    if (home_queue* queue = find_home_queue(c.index)) queue->moved();
    tell_homes(c.index, self_.id());
    return;
  }
  const address at = self_.address_of(*c.process);
  tell(self_, home, register_message<Index>::instance, id(), 0,
       pack(0, location{0, found::here, at.slot, at.generation, c.birth, c.moves}, c.index));
}

// A migration is over when the home has heard of it. News of earlier ones may come later.
template <class Index>
void index_part<Index>::registered(const Index& i, const location& l, std::uint32_t pe) {
  remote_location* a = find_location(i);
  if (a == nullptr || a->state != remote_location::what::at || a->birth != l.birth || l.moves < a->moves) return;
  if (a->pe != pe || a->slot != l.slot || a->generation != l.generation) tell_homes(i, pe);
  a->pe = pe;
  a->slot = l.slot;
  a->generation = l.generation;
  a->moves = l.moves;
  if (home_queue* queue = find_home_queue(i)) queue->moved();
}

}  // namespace orrery::detail
