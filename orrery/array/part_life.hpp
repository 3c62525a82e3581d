// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/part.hpp>
#include <orrery/array/section_core.hpp>
#include <orrery/process/spawn.hpp>
#include <orrery/scheduler/node.hpp>

#include <cstring>
#include <tuple>

// How elements begin, move and end.
namespace orrery::detail {

/// True if objects of T can move to another OS process.
template <class T>
inline constexpr bool can_be_packed = serializable<T> && std::is_default_constructible_v<T>;

[[noreturn]] void throw_taken(const std::string& element);
[[noreturn]] void throw_not_packable(const std::string& element, std::string_view cls);
[[noreturn]] void throw_parked(const std::string& element);
[[nodiscard]] std::string early_text(const std::string& element, std::uint64_t limit);
[[noreturn]] void throw_no_pe(const std::string& element, std::uint32_t to, std::uint32_t pes);

// --- creating ------------------------------------------------------------------------------------------------------

template <class T, class Index>
std::uint32_t array_part<T, Index>::admit(const Index& i) {
  const auto it = table_.find(i);
  if (it != table_.end() && (!it->second.is_away() || it->second.there()->state == away::what::at))
    throw_taken(text_of(i));
  if (++births_given_ == 0) births_given_ = 1;
  return births_given_;
}

template <class T, class Index>
void array_part<T, Index>::place(const Index& i, cell_type& c) {
  if (const auto [it, fresh] = table_.try_emplace(i, &c); !fresh) {
    early_ = erase_away(i);
    table_.insert_or_assign(i, entry(&c));
  }
}

template <class T, class Index>
cell<T, Index>& array_part<T, Index>::conceive(const Index& i, std::uint32_t birth) {
  cell_type* c = cell_type::make(i);
  slot* s = nullptr;
  try {
    s = &self_.allocate_slot();
    place(i, *c);
  } catch (...) {
    if (s != nullptr) self_.free_slot(*s);
    cell_type::free(c);
    throw;
  }
  c->process = s;
  c->birth = birth;
  s->class_number = process_class.number;
  born(*c);
  return *c;
}

template <class T, class Index>
template <class... A>
void array_part<T, Index>::construct(cell_type& c, A&&... args) {
  slot& s = *c.process;
  try {
    constructing_cell = &c;
    if constexpr (constructible_from_kept<T, A...>) {  // else the caller has said so
      if constexpr (std::is_constructible_v<T, A&&...>) {
        new (c.storage()) T(std::forward<A>(args)...);
      } else {
        new (c.storage()) T{std::forward<A>(args)...};
      }
    }
    constructing_cell = nullptr;
    s.set_object(c.storage());
  } catch (...) {
    constructing_cell = nullptr;
    bury(c);
    scheduler::message* mailbox = take_mailbox(s);
    send_after(c, mailbox);
    cell_type::free(&c);
    throw;
  }
}

template <class T, class Index>
template <class... A>
void array_part<T, Index>::construct_inline(cell_type& c, A&&... args) {
  slot& s = *c.process;
  note_class(self_, process_class);
  struct guard {
    pe& self;
    slot& s;
    scheduler::activation a;
    activity_end end;
    guard(pe& p, slot& q, array_core& part) : self(p), s(q), a{&q, nullptr, nullptr}, end(&part) {
      part.begins();
      self.push_activation(a);
      s.active = &a;
      s.depth = 1;
    }
    ~guard() {
      self.pop_activation(a);
      s.active = nullptr;
      s.depth = 0;
      if (!s.has_object) {
        self.free_slot(s);
      } else {
        self.settle(s);
      }
    }
  } g(self_, s, *this);
  construct(c, std::forward<A>(args)...);
}

template <class T, class Index>
void array_part<T, Index>::settle_at(const Index& i, std::uint32_t birth, std::uint32_t pe) {
  scheduler::message* waiting = erase_away(i);
  away& a = make_away(i, pe, true);
  a.birth = birth;
  dispatch_all(waiting);
}

template <class T, class Index>
void array_part<T, Index>::know_bulk(const std::vector<Index>& all, std::uint32_t pe) {
  table_.reserve(table_.size() + all.size());
  for (const Index& i : all) settle_at(i, 0, pe);
}

/// Asks for a new element: first at the home, which admits it, then where it is to live.
struct creation {
  caller from;
  std::uint32_t at = 0;
  std::uint32_t birth = 0;
  bool admitted = false;
  template <class A>
  void serialize(A& a) {
    a & from & at & birth & admitted;
  }
};

template <class T, class Index, class... A>
struct create_message {
  static slot* route(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size) {
    creation c;
    array_core* const core = array_directory::of(self).find(e.slot);
    try {
      const auto payload = wire_payload(d, e, size);
      orrery::reader r(payload);
      c = orrery::read<creation>(r);
      const auto i = orrery::read<Index>(r);
      auto& part = part_of<T, Index>(self, e.slot);
      if (!c.admitted) {
        if (!self.owner().reachable(c.at)) throw node_lost(part.text_of(i) + " was to be created there");
        c.birth = part.admit(i);
        c.admitted = true;
        if (c.at != self.id()) {
          bytes b = pack(0, c, i);
          const auto args = after_section(payload, r);
          b.insert(b.end(), args.begin(), args.end());
          tell(self, c.at, instance, e.slot, 0, b);
          d.release();
          part.settle_at(i, c.birth, c.at);
          return nullptr;
        }
      }
      auto& made = part.conceive(i, c.birth);
      made.process->state = scheduler::process_state::idle;
      self.push(*made.process, self.detach(d, e, size));
      part.flush_early();
      return nullptr;
    } catch (...) {
      const activity_end end(core);
      d.release();
      answer_error(self, c.from, &instance, std::current_exception());
      return nullptr;
    }
  }
  static void run(pe& self, slot& s, scheduler::delivery& d) {
    caller from;
    const activity_end end(array_directory::of(self).find(d.heap->head.slot));
    try {
      orrery::reader r({d.payload, d.payload_bytes});
      const auto c = orrery::read<creation>(r);
      from = c.from;
      const auto i = orrery::read<Index>(r);
      orrery::reader args(after_section({d.payload, d.payload_bytes}, r));
      std::tuple<A...> values{orrery::read<A>(args)...};
      auto& part = part_of<T, Index>(self, d.heap->head.slot);
      d.release();
      note_class(self, *s.cls());
      auto* made = part.find_local(i);
      if (made == nullptr || made->process != &s) throw process_gone(part.text_of(i));
      std::apply([&](A&... v) { part.construct(*made, std::move(v)...); }, values);
      answer_value(self, from, {});
    } catch (...) {
      d.release();
      answer_error(self, from, &instance, std::current_exception());
    }
  }
  inline static const birth_handler instance{type_name<T>(), "(creation)", type_name<create_message>(), &run, &route};
};

// --- ending --------------------------------------------------------------------------------------------------------

template <class T, class Index>
void array_part<T, Index>::mark_deleted(const Index& i, std::uint32_t birth) {
  away& a = make_away(i, 0, true);
  a.state = away::what::deleted;
  a.birth = birth;
  deleted_.emplace_back(i, birth);
  while (deleted_.size() > settings_.deleted) {
    const auto [old, number] = std::move(deleted_.front());
    deleted_.pop_front();
    if (const away* o = find_away(old); o != nullptr && o->state == away::what::deleted && o->birth == number)
      dispatch_all(erase_away(old));
  }
}

template <class T, class Index>
struct buried_message {
  static slot* route(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size) {
    try {
      orrery::reader r(wire_payload(d, e, size));
      const auto i = orrery::read<Index>(r);
      const std::uint32_t birth = e.generation;
      array_core* part = array_directory::of(self).find(e.slot);
      d.release();
      if (part != nullptr) static_cast<array_part<T, Index>*>(part)->forget_buried(i, birth);
    } catch (...) {
      self.fail(d, std::current_exception());
    }
    return nullptr;
  }
  inline static const control_handler instance{type_name<buried_message>(), &route};
};

template <class T, class Index>
void array_part<T, Index>::bury(cell_type& c) {
  table_.erase(c.index);
  const std::uint32_t home = home_of(c.index);
  if (home == self_.id()) {
    mark_deleted(c.index, c.birth);
  } else {
    tell(self_, home, buried_message<T, Index>::instance, id(), c.birth, pack(0, c.index));
  }
  if (c.sections != nullptr) {
    bytes index;
    pack_after(index, c.index);
    for (const membership& m : *c.sections) leave_section(*this, m.home, m, index);
  }
  died(c);
}

template <class T, class Index>
void array_part<T, Index>::forget_buried(const Index& i, std::uint32_t birth) {
  const away* a = find_away(i);
  if (a == nullptr || a->birth != birth || a->state != away::what::at) return;
  scheduler::message* waiting = erase_away(i);
  mark_deleted(i, birth);
  dispatch_all(waiting);
}

template <class T, class Index>
scheduler::message* array_part<T, Index>::take_mailbox(slot& s) noexcept {
  s.charge = 0;
  return s.take_all();
}

template <class T, class Index>
void array_part<T, Index>::send_after(cell_base& c, scheduler::message* mailbox) {
  while (mailbox != nullptr) {
    scheduler::message* m = std::exchange(mailbox, mailbox->next);
    const auto* h = reinterpret_cast<const scheduler::handler*>(m->head.handler);
    if (h->route != nullptr) {
      static_cast<const array_handler*>(h)->forward(*this, c, m);
    } else {  // it was sent to the process, not to the element
      scheduler::delivery d;
      self_.load(d, *m);
      self_.fail(d, gone(static_cast<cell_type&>(c).index));
    }
  }
}

// --- migration -----------------------------------------------------------------------------------------------------

struct travel_papers {
  std::uint32_t broadcasts = 0;
  std::uint32_t reductions = 0;
  std::uint32_t birth = 0;
  std::uint32_t moves = 0;
  std::uint64_t load_ns = 0;
};

// To another node: its state. Then the first message of its new process is to unpack it.
template <class T, class Index>
struct packed_message {
  static slot* route(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size) {
    try {
      return part_of<T, Index>(self, e.slot).arrive_packed(d, e, size);
    } catch (...) {
      self.fail(d, std::current_exception());
      return nullptr;
    }
  }
  static void run(pe& self, slot& s, scheduler::delivery& d) {
    if constexpr (can_be_packed<T>) {
      cell<T, Index>* c = nullptr;
      try {
        auto& part = part_of<T, Index>(self, d.heap->head.slot);
        orrery::reader r({d.payload, d.payload_bytes});
        (void)orrery::read<travel_papers>(r);
        const auto i = orrery::read<Index>(r);
        (void)orrery::read<std::vector<baggage>>(r);
        (void)orrery::read<std::vector<membership>>(r);
        c = part.find_local(i);
        orrery::reader state(after_section({d.payload, d.payload_bytes}, r));
        part.construct(*c);
        orrery::read_into(state, *c->object());
      } catch (...) {
        self.report_failed_post(&instance, std::current_exception());
      }
      d.release();
    } else {
      (void)s;
      d.release();
    }
  }
  inline static const birth_handler instance{type_name<T>(), "(arrival)", type_name<packed_message>(), &run, &route};
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
    array_core* part = array_directory::of(self).find(e.slot);
    d.release();
    if (part != nullptr) {
      static_cast<array_part<T, Index>*>(part)->arrive_whole(c, broadcasts);
    } else {  // the array was destroyed while it was on its way
      c->object()->~T();
      cell<T, Index>::free(c);
    }
    return nullptr;
  }
  inline static const control_handler instance{type_name<whole_message>(), &route};
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
      self.fail(d, std::current_exception());
    }
    return nullptr;
  }
  inline static const control_handler instance{type_name<news_message>(), &route};
};
template <class T, class Index>
using register_message = news_message<T, Index, &array_part<T, Index>::registered>;

template <class T, class Index>
void array_part<T, Index>::depart(cell_type& c, std::uint32_t to) {
  slot& s = *c.process;
  if (to == self_.id()) return;
  if (to >= about().pes) throw_no_pe(text_of(c.index), to, about().pes);
  if (s.depth > 1) throw_parked(text_of(c.index));
  const bool whole = self_.owner().is_local(to) && !settings_.always_serialize;
  bytes state;
  if (!whole) {
    if constexpr (can_be_packed<T>) {
      pack_after(state, *c.object());
    } else {
      throw_not_packable(text_of(c.index), type_name<T>());
    }
  }
  (void)self_.channel_to(to);  // throws node_lost, while it can stay
  ++c.moves;
  table_.erase(c.index);
  away& a = make_away(c.index, to, is_home(c.index));
  a.birth = c.birth;
  a.moves = c.moves;
  departed(c, to);
  s.has_object = false;
  scheduler::message* mailbox = take_mailbox(s);
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
    bytes b = pack(0, travel_papers{c.broadcasts, c.reductions, c.birth, c.moves, c.load_ns}, c.index, broadcasts,
                   c.sections != nullptr ? *c.sections : std::vector<membership>{});
    b.insert(b.end(), state.begin(), state.end());
    tell(self_, to, packed_message<T, Index>::instance, id(), 0, b);
    send_after(c, mailbox);
    c.object()->~T();
    cell_type::free(&c);
  }
}

template <class T, class Index>
slot* array_part<T, Index>::arrive_packed(scheduler::delivery& d, const wire::envelope& e, std::uint32_t size) {
  orrery::reader r(wire_payload(d, e, size));
  const auto papers = orrery::read<travel_papers>(r);
  const auto i = orrery::read<Index>(r);
  const auto broadcasts = orrery::read<std::vector<baggage>>(r);
  auto sections = orrery::read<std::vector<membership>>(r);
  if (find_local(i) != nullptr) throw bad_message(errc::message_corrupt, text_of(i) + " arrives twice");
  cell_type* c = cell_type::make(i);
  c->broadcasts = papers.broadcasts;
  c->reductions = papers.reductions;
  c->birth = papers.birth;
  c->moves = papers.moves;
  c->load_ns = papers.load_ns;
  if (!sections.empty()) c->sections = std::make_unique<std::vector<membership>>(std::move(sections));
  slot& s = self_.allocate_slot();
  s.state = scheduler::process_state::idle;
  s.class_number = process_class.number;
  note_class(self_, process_class);
  c->process = &s;
  place(i, *c);
  self_.push(s, self_.detach(d, e, size));
  unpack_broadcasts(*c, broadcasts);
  if (arrived(*c)) catch_up(*c);
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
  if (arrived(*c)) catch_up(*c);
  flush_early();
  report_arrival(*c);
}

template <class T, class Index>
void array_part<T, Index>::report_arrival(const cell_type& c) {
  const std::uint32_t home = home_of(c.index);
  if (home == self_.id()) return;
  const address at = self_.address_of(*c.process);
  tell(self_, home, register_message<T, Index>::instance, id(), 0,
       pack(0, location{0, at.slot, at.generation, c.birth, c.moves}, c.index));
}

// A migration is over when the home has heard of it. News of earlier ones may come later.
template <class T, class Index>
void array_part<T, Index>::registered(const Index& i, const location& l, std::uint32_t pe) {
  away* a = find_away(i);
  if (a == nullptr || a->state != away::what::at || a->birth != l.birth || l.moves < a->moves) return;
  a->pe = pe;
  a->slot = l.slot;
  a->generation = l.generation;
  a->moves = l.moves;
}

}  // namespace orrery::detail
