// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/part_homes.hpp>
#include <orrery/array/section_core.hpp>
#include <orrery/process/spawn.hpp>
#include <orrery/scheduler/node.hpp>

#include <cstring>
#include <tuple>

// How elements begin and end.
namespace orrery::detail {

/// True if objects of T can move to another OS process.
template <class T>
inline constexpr bool can_be_packed = serializable<T> && std::is_default_constructible_v<T>;

/// Stops the compiler with a sentence if not. Of the classes of elements that migrate: any program can run on several nodes.
template <class T>
consteval void require_migratable() {
  static_assert(
      std::is_default_constructible_v<T>,
      "orrery: elements of this class migrate, also to other nodes, where each is read into a new object: give the "
      "class a public default constructor");
  if constexpr (std::is_default_constructible_v<T>) require_serializable<T>();
}

[[noreturn]] void throw_taken(const std::string& element);
[[noreturn]] void throw_parked(const std::string& element);
/// Nobody waits for an element whose constructor throws: a line on stderr.
void report_no_creation(pe& self, const std::string& element, const std::exception_ptr& why) noexcept;
[[nodiscard]] std::exception_ptr too_many_early(const std::string& element, std::uint64_t limit);

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
    if (const auto in = std::exchange(taken_, nullptr)) c.order_of().in.merge(in->all(), [](std::uint64_t) {});
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
  if (birth != 0 && is_home(i)) tell_homes(i, self_.id());
  return *c;
}

template <class T, class Index>
template <class... A>
void array_part<T, Index>::construct(cell_type& c, A&&... args) {
  slot& s = *c.process;
  try {
    s.set_place(c.storage());
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
    s.apart = false;
    scheduler::message* mailbox = bury(c);
    resends_failed_ = true;
    send_after(c, mailbox);
    resends_failed_ = false;
    if (c.order != nullptr) c.order->out.close(self_);
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
    guard(pe& p, slot& q, array_core& part) : self(p), s(q), a{&q, &constructor, nullptr}, end(&part) {
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
  if (auto in = std::exchange(taken_, nullptr)) send_streams(i, pe, std::move(in));
  dispatch_all(waiting);
  if (birth != 0) tell_homes(i, pe);
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

template <class T, class Index>
void array_part<T, Index>::create_for_guest(const array_handler& h, std::span<const std::byte> payload) {
  orrery::reader r(payload);
  auto c = orrery::read<creation>(r);
  const auto i = orrery::read<Index>(r);
  const auto args = after_section(payload, r);
  try {
    const std::uint32_t home = home_of(i);
    c.at = home;
    c.admitted = false;
    bytes b = pack(0, c, i);
    b.insert(b.end(), args.begin(), args.end());
    begins();
    tell(self_, home, h, id(), 0, b);
  } catch (...) {
    answer_error(self_, c.from, &h, std::current_exception());
  }
}

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
      if (c.at == self.id() && part.creation_waits(i)) {
        part.hold_creation(i, d.detach(e, size));
        return nullptr;
      }
      auto& made = part.conceive(i, c.birth);
      made.process->state = scheduler::process_state::idle;
      self.push(*made.process, d.detach(e, size));
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
    Index i{};
    array_core* const core = array_directory::of(self).find(d.heap->head.slot);
    const activity_end end(core);
    try {
      orrery::reader r({d.payload, d.payload_bytes});
      const auto c = orrery::read<creation>(r);
      from = c.from;
      i = orrery::read<Index>(r);
      orrery::reader args(after_section({d.payload, d.payload_bytes}, r));
      std::tuple<A...> values{orrery::read<A>(args)...};
      auto& part = part_of<T, Index>(self, d.heap->head.slot);
      d.release();
      d.reply = from.call;  // for who looks at what runs: deadlock_detector.cpp
      d.source_pe = from.pe;
      note_class(self, *s.cls());
      auto* made = part.find_local(i);
      if (made == nullptr || made->process != &s) throw process_gone(part.text_of(i));
      std::apply([&](A&... v) { part.construct(*made, std::move(v)...); }, values);
      answer_value(self, from, {});
    } catch (...) {
      d.release();
      if (from.call == 0 && core != nullptr) {
        report_no_creation(self, static_cast<array_part<T, Index>*>(core)->text_of(i), std::current_exception());
      } else if (core != nullptr) {  // the home is to know that there is none before who waits does
        answer_from(self, static_cast<array_part<T, Index>*>(core)->home_of(i), core->id(), from, &instance,
                    std::current_exception());
      } else {
        answer_error(self, from, &instance, std::current_exception());
      }
    }
  }
  static void describe(wire::shape& types) {
    types.describe<Index>();
    (types.describe<A>(), ...);
  }
  // Only of what the program there does not know: who lost a node with it hears of that anyhow.
  static bool refused_there(pe& self, const scheduler::handler& h, std::span<const std::byte> payload, std::uint32_t,
                            const scheduler::unknown_message* unknown) noexcept try {
    if (unknown == nullptr) return false;
    const activity_end end(array_directory::of(self).find(unknown->slot));
    orrery::reader r(payload);
    answer_error(self, orrery::read<creation>(r).from, &h, unknown->why);
    return true;
  } catch (...) {
    return false;
  }
  // Only of one that runs: a creation does not wait in the mailbox of a process that does.
  static scheduler::hidden_caller::name caller_of(const scheduler::message&) noexcept { return {}; }
  static void fail_caller(pe&, slot&, scheduler::delivery& d, std::exception_ptr) noexcept { d.release(); }
  static constexpr scheduler::hidden_caller hidden{&caller_of, &fail_caller};
  struct creation_handler : birth_handler {
    creation_handler() noexcept
        : birth_handler(type_name<T>(), "(constructor)", wire::type_key<create_message>(), &create_message::run,
                        &create_message::route, &create_message::describe) {
      caller = &hidden;
      lost = &refused_there;
    }
  };
  inline static const creation_handler instance;
};

// --- ending --------------------------------------------------------------------------------------------------------

template <class T, class Index>
void array_part<T, Index>::mark_deleted(const Index& i, std::uint32_t birth, const inbox::counts& streams,
                                        std::uint32_t where) {
  tell_homes(i, nowhere);
  away& a = make_away(i, where, true);
  a.state = away::what::deleted;
  a.birth = birth;
  (void)merge_streams(i, streams);
  deleted_.emplace_back(i, birth);
  release_kept(i);
  while (deleted_.size() > settings_.deleted) {
    const auto [old, number] = std::move(deleted_.front());
    deleted_.pop_front();
    if (const away* o = find_away(old); o != nullptr && o->state == away::what::deleted && o->birth == number &&
                                        (o->in == nullptr || o->in->empty()))  // else end_stream forgets it
      dispatch_all(erase_away(old));
  }
}

template <class T, class Index>
struct buried_message {
  static slot* route(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size) {
    try {
      orrery::reader r(wire_payload(d, e, size));
      const auto i = orrery::read<Index>(r);
      const auto streams = orrery::read<inbox::counts>(r);
      const std::uint32_t birth = e.generation;
      array_core* part = array_directory::of(self).find(e.slot);
      d.release();
      if (part != nullptr) static_cast<array_part<T, Index>*>(part)->forget_buried(i, birth, streams);
    } catch (...) {
      d.fail(std::current_exception());
    }
    return nullptr;
  }
  inline static const control_handler instance{type_name<buried_message>(), &route, nullptr,
                                               wire::type_key<buried_message>()};
};

template <class T, class Index>
scheduler::message* array_part<T, Index>::bury(cell_type& c) {
  c.ended = true;
  scheduler::message* mailbox = take_mailbox(c);
  const inbox::counts streams = c.order != nullptr ? c.order->in.all() : inbox::counts{};
  take_out(c);
  const std::uint32_t home = home_of(c.index);
  if (home == self_.id()) {
    mark_deleted(c.index, c.birth, streams, self_.id());
  } else {
    tell(self_, home, buried_message<T, Index>::instance, id(), c.birth, pack(0, c.index, streams));
  }
  if (c.sections != nullptr)
    for (const membership& m : *c.sections) drop_early(m);
  if (c.sections != nullptr) {
    bytes index;
    pack_after(index, c.index);
    for (const membership& m : *c.sections) {
      if (!ends()) {
        leave_section(*this, m.home, m, index);
      } else {  // it would seem as if those that have not ended yet were all that had to contribute
        leave_if_it_stays({m.section, m.home, m.contributed, m.casts, {}}, index);
      }
    }
  }
  died(c);
  return mailbox;
}

template <class T, class Index>
void array_part<T, Index>::forget_buried(const Index& i, std::uint32_t birth, const inbox::counts& streams) {
  const away* a = find_away(i);
  if (a == nullptr || a->birth != birth || a->state != away::what::at) return;
  const std::uint32_t where = a->pe;
  scheduler::message* waiting = erase_away(i);
  mark_deleted(i, birth, streams, where);
  dispatch_all(waiting);
}

template <class T, class Index>
scheduler::message* array_part<T, Index>::take_mailbox(cell_base& c) noexcept {
  c.process->charge = 0;
  scheduler::message* all = c.process->take_all();
  if (c.order == nullptr) return all;
  c.order->in.rewind(all);
  return c.order->in.take_held(all);
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
      d.load(self_, *m);
      d.fail(gone(static_cast<cell_type&>(c).index));
    }
  }
}

}  // namespace orrery::detail
