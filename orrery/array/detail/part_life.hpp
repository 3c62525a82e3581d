// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/activity.hpp>
#include <orrery/array/detail/part_homes.hpp>
#include <orrery/array/detail/section_core.hpp>
#include <orrery/scheduler/reach.hpp>

// How elements begin and end.
namespace orrery::detail {

[[noreturn]] void throw_taken(const std::string& element);
[[nodiscard]] std::exception_ptr too_many_early(const std::string& element, std::uint64_t limit);

// --- creating ------------------------------------------------------------------------------------

template <class Index>
std::uint32_t index_part<Index>::admit(const Index& i) {
  const auto it = tables_->places.find(i);
  if (it != tables_->places.end() &&
      (!it->second.is_remote() || it->second.there()->state == remote_location::what::at))
    throw_taken(text_of(i));
  if (++births_given_ == 0) births_given_ = 1;
  return births_given_;
}

template <class Index>
void index_part<Index>::place(const Index& i, cell_type& c) {
  if (const auto [it, fresh] = tables_->places.try_emplace(i, &c); !fresh) {
    // behind those for another element, if that is still to get them
    scheduler::message** last = &early_;
    while (*last != nullptr) last = &(*last)->next;
    *last = erase_remote_location(i);
    tables_->places.insert_or_assign(i, whereabouts<Index>(&c));
    if (const auto in = std::exchange(taken_, nullptr)) c.order_of().in.merge(in->all());
  }
}

template <class Index>
index_cell<Index>& index_part<Index>::create_entry(const Index& i, std::uint32_t birth) {
  cell_type* c = make_cell(i);
  slot* s = nullptr;
  try {
    s = &self_.allocate_slot();
    place(i, *c);
  } catch (...) {
    if (s != nullptr) self_.free_slot(*s);
    free_cell(*c);
    throw;
  }
  c->process = s;
  c->birth = birth;
  s->class_number = elements_.process_class.number;
  born(*c);
  if (birth != 0 && is_home(i)) tell_homes(i, self_.id());
  return *c;
}

template <class Index>
void index_part<Index>::undo_creation(cell_type& c) {
  c.process->apart = false;
  scheduler::message* mailbox = unregister(c);
  resends_failed_ = true;
  send_after(c, mailbox);
  resends_failed_ = false;
  if (c.order != nullptr) c.order->out.close(self_);
  free_cell(c);
}

template <class Index>
void index_part<Index>::settle_at(const Index& i, std::uint32_t birth, std::uint32_t pe) {
  scheduler::message* waiting = erase_remote_location(i);
  remote_location& a = make_location(i, pe, true);
  a.birth = birth;
  if (auto in = std::exchange(taken_, nullptr)) send_streams(i, pe, std::move(in));
  dispatch_all(waiting);
  if (birth != 0) tell_homes(i, pe);
}

template <class Index>
void index_part<Index>::know_bulk(const std::vector<Index>& all, std::uint32_t pe) {
  tables_->places.reserve(tables_->places.size() + all.size());
  for (const Index& i : all) settle_at(i, 0, pe);
}

template <class Index>
void index_part<Index>::create_for_guest(const array_handler& h, std::span<const std::byte> payload) {
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
    follow_creation(i, home);  // messages of that program come by way of this PE, too
  } catch (...) {
    answer_error(self_, c.from, &h, std::current_exception());
  }
}

template <class Index>
slot* index_part<Index>::route_creation(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size,
                                        const array_handler& instance) {
  creation c;
  array_core* const core = array_directory::of(self).find(e.slot);
  try {
    const auto payload = wire_payload(d, e, size);
    orrery::reader r(payload);
    c = orrery::read<creation>(r);
    const auto i = orrery::read<Index>(r);
    auto& part = index_part_of<Index>(self, e.slot);
    if (!c.admitted) {
      if (!scheduler::reaches(self, c.at)) throw node_lost(part.text_of(i) + " was to be created there");
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
    auto& made = part.create_entry(i, c.birth);
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

// --- ending --------------------------------------------------------------------------------------

template <class Index>
void index_part<Index>::mark_deleted(const Index& i, std::uint32_t birth, const inbox::counts& streams,
                                     std::uint32_t where) {
  tell_homes(i, nowhere);
  remote_location& a = make_location(i, where, true);
  a.state = remote_location::what::deleted;
  a.birth = birth;
  (void)merge_streams(i, streams);
  tables_->deleted.emplace_back(i, birth);
  release_kept(i);
  while (tables_->deleted.size() > settings_.deleted) {
    const auto [old, number] = std::move(tables_->deleted.front());
    tables_->deleted.pop_front();
    // else end_stream forgets it
    if (const remote_location* o = find_location(old); o != nullptr && o->state == remote_location::what::deleted &&
                                                       o->birth == number && (o->in == nullptr || o->in->empty()))
      dispatch_all(erase_remote_location(old));
  }
}

template <class Index>
struct buried_message {
  static slot* route(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size) {
    try {
      orrery::reader r(wire_payload(d, e, size));
      const auto i = orrery::read<Index>(r);
      const auto streams = orrery::read<inbox::counts>(r);
      const std::uint32_t birth = e.generation;
      array_core* part = array_directory::of(self).find(e.slot);
      d.release();
      if (part != nullptr) static_cast<index_part<Index>*>(part)->forget_buried(i, birth, streams);
    } catch (...) {
      d.fail(std::current_exception());
    }
    return nullptr;
  }
  inline static const control_handler instance{type_name<buried_message>(), &route, nullptr,
                                               wire::type_key<buried_message>()};
};

template <class Index>
scheduler::message* index_part<Index>::unregister(cell_type& c) {
  c.ended = true;
  scheduler::message* mailbox = take_mailbox(c);
  const inbox::counts streams = c.order != nullptr ? c.order->in.all() : inbox::counts{};
  take_out(c);
  const std::uint32_t home = home_of(c.index);
  if (home == self_.id()) {
    mark_deleted(c.index, c.birth, streams, self_.id());
  } else {
    tell(self_, home, buried_message<Index>::instance, id(), c.birth, pack(0, c.index, streams));
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
        leave_if_it_stays({m.section, m.home, m.contributed, m.broadcasts, {}}, index);
      }
    }
  }
  died(c);
  return mailbox;
}

template <class Index>
void index_part<Index>::forget_buried(const Index& i, std::uint32_t birth, const inbox::counts& streams) {
  const remote_location* a = find_location(i);
  if (a == nullptr || a->birth != birth || a->state != remote_location::what::at) return;
  const std::uint32_t where = a->pe;
  scheduler::message* waiting = erase_remote_location(i);
  mark_deleted(i, birth, streams, where);
  dispatch_all(waiting);
}

template <class Index>
void index_part<Index>::object_has_ended(cell_type& c) {
  auto* part = static_cast<index_part*>(c.part);
  if (part->find_local(c.index) == &c) {  // the world ends
    part->take_out(c);
    part->abandon(c);
    if (c.order != nullptr)
      for (auto* m = c.order->in.take_held(nullptr); m != nullptr;) discard(part->self_, std::exchange(m, m->next));
  } else if (c.order != nullptr) {
    c.order->out.close(part->self_);
  }
  part->note_ended(*c.process);
}

template <class Index>
scheduler::message* index_part<Index>::take_mailbox(cell_base& c) noexcept {
  c.process->charge = 0;
  scheduler::message* all = c.process->take_all();
  if (c.order == nullptr) return all;
  c.order->in.rewind(all);
  return c.order->in.take_held(all);
}

template <class Index>
void index_part<Index>::send_after(cell_base& c, scheduler::message* mailbox) {
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
