// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/part_life.hpp>

#include <cstring>

// How elements move.
namespace orrery::detail {

// What an element takes along to another node, beside its state.
template <class T, class Index>
struct luggage {
  Index index{};
  std::uint32_t broadcasts = 0;
  std::uint32_t reductions = 0;
  std::uint32_t birth = 0;
  std::uint32_t moves = 0;
  std::uint64_t load_ns = 0;
  std::vector<baggage> waiting;
  std::vector<membership> sections;
  order_luggage order;
  typename cell<T, Index>::traffic_list sent;
};

// Ends the element of a process that runs: it is found no more, its destructor runs, and what it has not executed is sent on.
template <class T, class Index>
void end_element(pe& self, slot& s) {
  auto& c = cell<T, Index>::of(s.where_apart());
  auto* part = static_cast<array_part<T, Index>*>(c.part);
  const array_core::ending still(*part);  // it stays till then, also if the array is destroyed
  scheduler::message* mailbox = part->bury(c);
  part->send_after(c, mailbox);
  part->note_ending(c.index, s);
  self.end_object(s);  // may park; what is sent meanwhile does not find it any more
  part->note_ended(s);
}
/// An element that has moved could not be made again from its state.
void report_no_arrival(pe& self, const std::string& element, const std::exception_ptr& why) noexcept;

// To another node: its state. Then the first message of its new process is to unpack it.
template <class T, class Index>
struct packed_message {
  static slot* route(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size) {
    try {
      return part_of<T, Index>(self, e.slot).arrive_packed(d, e, size);
    } catch (...) {
      d.fail(std::current_exception());
      return nullptr;
    }
  }
  static void run(pe& self, slot& s, scheduler::delivery& d) {
    if constexpr (can_be_packed<T>) {
      cell<T, Index>* c = nullptr;
      std::string element;
      try {
        auto& part = part_of<T, Index>(self, d.heap->head.slot);
        orrery::reader r({d.payload, d.payload_bytes});
        c = part.find_local(orrery::read<luggage<T, Index>>(r).index);
        element = part.text_of(c->index);
        orrery::reader state(after_section({d.payload, d.payload_bytes}, r));
        part.construct(*c);
        orrery::read_into(state, *c->object());
        d.release();
      } catch (...) {
        d.release();
        report_no_arrival(self, element, std::current_exception());
        if (s.has_object) end_element<T, Index>(self, s);  // without its state it is none
      }
    } else {
      (void)s;
      d.release();
    }
  }
  // Of an element with a serialize() only its size is looked at: it may not be made where it has no index.
  static void describe(wire::shape& types) { types.name<T>(); }
  inline static const birth_handler instance{type_name<T>(), "(arrival)", wire::type_key<packed_message>(),
                                             &run,           &route,      &describe};
};

// To another PE of the node: the cell as it is.
template <class T, class Index>
struct whole_message {
  static slot* route(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size) {
    if (d.remote) return refuse_route(self, d, e, size);
    cell<T, Index>* c = nullptr;
    std::memcpy(&c, d.payload, sizeof c);
    std::vector<baggage> broadcasts;
    if (const auto all = wire_payload(d, e, size); all.size() > section_size) {
      orrery::reader r(all.subspan(section_size));
      broadcasts = orrery::read<std::vector<baggage>>(r);
    }
    const std::uint32_t array = e.slot;
    array_core* part = array_directory::of(self).find(array);
    d.release();  // its sender may write there again
    if (part != nullptr) {
      static_cast<array_part<T, Index>*>(part)->arrive_whole(c, broadcasts);
    } else {
      end_without_array(self, array, c);
    }
    return nullptr;
  }
  // The array was destroyed while it was on its way. Its destructor finds all that it may look at, and runs as a process.
  static void end_without_array(pe& self, std::uint32_t array, cell<T, Index>* c) noexcept {
    try {
      start_function(self, [array, c] { end_alone(array, c); });
    } catch (const std::bad_alloc&) {
      self.failures().report("an element of a destroyed array is not ended", std::current_exception());
    }
  }
  static void end_alone(std::uint32_t array, cell<T, Index>* c) {
    array_part<T, Index> stand_in(
        here_pe(), {array, here_pe().id(), array_pes(std::vector{here_pe().id()}), 1, "a destroyed array"}, {});
    c->part = &stand_in;
    c->ended = true;
    c->object()->~T();
    cell<T, Index>::free(c);
  }
  // The world has ended while it was on its way.
  static void never_arrives(void* payload) {
    cell<T, Index>* c = nullptr;
    std::memcpy(&c, payload, sizeof c);
    end_alone(0, c);
  }
  struct whole_handler : control_handler {
    whole_handler() noexcept
        : control_handler(type_name<whole_message>(), &whole_message::route, nullptr, wire::type_key<whole_message>()) {
      drop = &never_arrives;
    }
  };
  inline static const whole_handler instance;
};

// News of where an element is, for one of the functions of the part that take them.
template <class T, class Index, auto Told>
struct news_message {
  using location = typename array_part<T, Index>::location;
  static slot* route(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size) {
    const std::uint32_t from = d.source_pe;
    try {
      orrery::reader r(wire_payload(d, e, size));
      const auto l = orrery::read<location>(r);
      const auto i = orrery::read<Index>(r);
      array_core* part = array_directory::of(self).find(e.slot);
      d.release();
      if (part != nullptr) (static_cast<array_part<T, Index>*>(part)->*Told)(i, l, from);
    } catch (...) {
      d.fail(std::current_exception());
    }
    return nullptr;
  }
  inline static const control_handler instance{type_name<news_message>(), &route, nullptr,
                                               wire::type_key<news_message>()};
};
template <class T, class Index>
using register_message = news_message<T, Index, &array_part<T, Index>::registered>;

template <class T, class Index>
void array_part<T, Index>::depart(cell_type& c, std::uint32_t to) {
  slot& s = *c.process;
  if (to == self_.id()) return;
  require_on(c.index, to);
  if (s.depth > 1) throw_parked(text_of(c.index));
  const bool whole = self_.owner().is_local(to) && !settings_.always_serialize;
  bytes state;
  if (!whole) {
    if constexpr (can_be_packed<T>) pack_after(state, *c.object());  // else leave_operation has said it
  }
  (void)self_.channel_to(to);  // throws node_lost, while it can stay
  ++c.moves;
  take_out(c);
  away& a = make_away(c.index, to, is_home(c.index));
  a.birth = c.birth;
  a.moves = c.moves;
  departed(c, to);
  s.has_object = s.apart = false;
  scheduler::message* mailbox = take_mailbox(c);
  const std::vector<baggage> broadcasts = pack_broadcasts(mailbox);
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
    tell(self_, to, whole_message<T, Index>::instance, id(), 0, b);
    send_after(stay, mailbox);
  } else {
    luggage<T, Index> l{c.index, c.broadcasts, c.reductions, c.birth, c.moves, c.load_ns, broadcasts, {}, {}, {}};
    if (c.sections != nullptr) l.sections = *c.sections;
    if (c.order != nullptr) l.order = {std::move(c.order->out), c.order->in.all()};
    if (c.sent != nullptr) l.sent.assign(c.sent->begin(), c.sent->end());
    bytes b = pack(0, l);
    b.insert(b.end(), state.begin(), state.end());
    tell(self_, to, packed_message<T, Index>::instance, id(), 0, b);
    send_after(c, mailbox);
    const ending still(*this);  // the destructor may park, and finds its array also if that is destroyed meanwhile
    c.ended = true;  // here
    c.object()->~T();
    cell_type::free(&c);
  }
}

template <class T, class Index>
slot* array_part<T, Index>::arrive_packed(scheduler::delivery& d, const wire::envelope& e, std::uint32_t size) {
  orrery::reader r(wire_payload(d, e, size));
  auto l = orrery::read<luggage<T, Index>>(r);
  if (find_local(l.index) != nullptr) throw bad_message(errc::message_corrupt, text_of(l.index) + " arrives twice");
  cell_type* c = cell_type::make(l.index);
  c->broadcasts = l.broadcasts;
  c->reductions = l.reductions;
  c->birth = l.birth;
  c->moves = l.moves;
  c->load_ns = l.load_ns;
  if (!l.sections.empty()) c->sections = std::make_unique<std::vector<membership>>(std::move(l.sections));
  if (!l.sent.empty()) c->sent = std::make_unique<typename cell_type::traffic>(l.sent.begin(), l.sent.end());
  if (!l.order.out.empty() || !l.order.in.empty()) {
    c->order_of().out = std::move(l.order.out);
    c->order->in.merge(l.order.in, [](std::uint64_t) {});
  }
  slot& s = self_.allocate_slot();
  s.state = scheduler::process_state::idle;
  s.class_number = process_class.number;
  note_class(self_, process_class);
  c->process = &s;
  place(l.index, *c);
  self_.push(s, d.detach(e, size));
  unpack_broadcasts(*c, l.waiting);
  arrived(*c);
  flush_early();
  report_arrival(*c);
  return nullptr;
}

template <class T, class Index>
void array_part<T, Index>::arrive_whole(cell_type* c, const std::vector<baggage>& broadcasts) {
  slot& s = self_.allocate_slot();
  s.state = scheduler::process_state::idle;
  s.class_number = process_class.number;
  s.set_object(c->storage());
  c->process = &s;
  place(c->index, *c);
  unpack_broadcasts(*c, broadcasts);
  arrived(*c);
  flush_early();
  report_arrival(*c);
}

template <class T, class Index>
void array_part<T, Index>::report_arrival(const cell_type& c) {
  const std::uint32_t home = home_of(c.index);
  if (home == self_.id()) {
    if (home_queue* queue = find_home_queue(c.index)) queue->moved();
    tell_homes(c.index, self_.id());
    return;
  }
  const address at = self_.address_of(*c.process);
  tell(self_, home, register_message<T, Index>::instance, id(), 0,
       pack(0, location{0, found::here, at.slot, at.generation, c.birth, c.moves}, c.index));
}

// A migration is over when the home has heard of it. News of earlier ones may come later.
template <class T, class Index>
void array_part<T, Index>::registered(const Index& i, const location& l, std::uint32_t pe) {
  away* a = find_away(i);
  if (a == nullptr || a->state != away::what::at || a->birth != l.birth || l.moves < a->moves) return;
  if (a->pe != pe || a->slot != l.slot || a->generation != l.generation) tell_homes(i, pe);
  a->pe = pe;
  a->slot = l.slot;
  a->generation = l.generation;
  a->moves = l.moves;
  if (home_queue* queue = find_home_queue(i)) queue->moved();
}

}  // namespace orrery::detail
