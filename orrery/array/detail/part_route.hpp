// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/part_early.hpp>
#include <orrery/scheduler/deadlock_detector.hpp>
#include <orrery/scheduler/reach.hpp>

// How messages find their element (paper, "Message delivery", figures 3 to 5).
//
// Order. Messages of one sender to one element must not overtake each other while neither moves,
// though the way to the element changes when the sender learns where it is. So each message has a
// number. A PE that finds the element after a detour, or was asked to, tells the sender's PE with
// this number. If it is that of the last message that went the old way, nothing is under way there
// any more, and the new way is taken. Else messages wait at the sender while a probe follows the
// others on the old way; its answer says that they are there. An entry that is not used any more is
// forgotten only after such a probe.
namespace orrery::detail {

template <class Index>
remote_location& index_part<Index>::make_location(const Index& i, std::uint32_t pe, bool is_home) {
  if (!is_home && ++cached_ > sweep_at_) sweep();
  auto* a = new remote_location;
  a->pe = pe;
  a->is_home = is_home;
  tables_->places.insert_or_assign(i, whereabouts<Index>(a));
  return *a;
}

template <class Index>
scheduler::message* index_part<Index>::erase_remote_location(const Index& i) {
  taken_.reset();
  const auto it = tables_->places.find(i);
  if (it == tables_->places.end() || !it->second.is_remote()) return nullptr;
  remote_location* a = it->second.there();
  if (a->is_home) begins(a->queued);  // early messages, which were at rest
  if (!a->is_home) --cached_;
  scheduler::message* waiting = a->take_all();
  early_bytes_ -= a->early;
  taken_ = std::move(a->in);
  if (taken_ != nullptr) {
    taken_->rewind(waiting);
    waiting = taken_->take_held(waiting);
  }
  delete a;
  tables_->places.erase(it);
  return waiting;
}

template <class Index>
void index_part<Index>::forget_lost_place(const Index& i) {
  const remote_location* a = find_location(i);
  if (a == nullptr || a->is_home || a->state != remote_location::what::at || scheduler::reaches(self_, a->pe)) return;
  if (const std::uint32_t home = home_of(i); home == a->pe || !scheduler::reaches(self_, home)) return;
  dispatch_all(erase_remote_location(i));
}

template <class Index>
remote_location* index_part<Index>::way_to(const Index& i) {
  if (lossy()) [[unlikely]]
    forget_lost_place(i);
  if (const auto it = tables_->places.find(i); it != tables_->places.end()) {
    remote_location* a = it->second.there();
    return a->state == remote_location::what::at ? a : nullptr;
  }
  const std::uint32_t home = home_of(i);
  if (home == self_.id()) return nullptr;
  const std::uint32_t to = first_try(i);
  remote_location& a = make_location(i, to, false);
  a.asks = to != home;
  return &a;
}

// The creation goes to the home. Later messages of this PE must come behind it, and not by way of
// the place where the last element of the index was.
template <class Index>
void index_part<Index>::follow_creation(const Index& i, std::uint32_t home) {
  // most insertions: this PE knows of no place at all
  if (home == self_.id() || (cached_ == 0 && homes_.count() == 1)) return;
  const auto it = tables_->places.find(i);
  if (it == tables_->places.end()) {
    if (first_try(i) != home) make_location(i, home, false);
    return;
  }
  if (!it->second.is_remote()) return;
  remote_location& a = *it->second.there();
  if (a.state != remote_location::what::at || (a.pe == home && !a.asks)) return;
  if (a.unsettled()) {
    a.state = remote_location::what::waiting;
    send_route_probe(i, a);
    return;
  }
  a.pe = home;
  a.slot = wire::no_slot;
  a.asks = a.expiring = false;
}

template <class Index>
slot* index_part<Index>::route(const routed_kind& kind, scheduler::delivery& d, const wire::envelope& e,
                               std::uint32_t size, const route_head& h, const Index& i, order_tag tag) {
  if (lossy()) [[unlikely]]
    forget_lost_place(i);
  const auto it = tables_->places.find(i);
  if (it != tables_->places.end() && !it->second.is_remote()) {
    cell_type* c = it->second.here();
    if (h.hops != 0 || (h.flags & route_head::wants_location) != 0) [[unlikely]] {
      if (kind.counts && (h.flags & (route_head::to_home | route_head::from_home)) != 0)
        return end_pursuit(*c, d, e, size, h, Index(i), tag);
      if (h.number != 0) tell_location(h, i, c);
    }
    if (h.call != 0) self_.deadlocks().suspect_if_waiting(*c->process);
    if (tag.stream != 0) [[unlikely]]
      return pass_element(*c, d, e, size, i, tag);
    return c->process;
  }
  remote_location* const a = it != tables_->places.end() ? it->second.there() : nullptr;
  if (pass_on(kind, a, d, e, size, h, i, tag)) return nullptr;
  return route_at_home(kind, a, d, e, size, h, i, tag);
}

// True: the message is on its way to another PE, or has failed.
template <class Index>
bool index_part<Index>::pass_on(const routed_kind& kind, remote_location* a, scheduler::delivery& d,
                                const wire::envelope& e, std::uint32_t size, const route_head& h, const Index& i,
                                order_tag tag) {
  if ((h.flags & (route_head::asks | route_head::asked)) == route_head::asks && h.origin != self_.id()) {
    const auto known = tables_->told.find(i);
    if (known != tables_->told.end() && known->second != self_.id() && scheduler::reaches(self_, known->second)) {
      send_on(*this, kind, d, e, size, known->second);
      return true;
    }
  }
  // A PE that asks knows nothing. Messages from elsewhere go to the first home meanwhile. They must
  // not wait for the answer, which may have to wait for them.
  if (a != nullptr && a->asks && a->held == nullptr && (h.number != 0 || h.origin != self_.id())) {
    a->passes |= h.origin != self_.id();
    send_on(*this, kind, d, e, size, home_of(i));
    return true;
  }
  // It had waited here, and goes before the one that is to ask: both take the way of all.
  if (a != nullptr && a->asks && a->state == remote_location::what::at) {
    a->asks = a->passes = false;
    a->pe = home_of(i);
  }
  // If the element went from the PE that the home knows to one that is lost, these two would send
  // messages to each other for ever.
  if (lossy() && a != nullptr && a->is_home && a->state == remote_location::what::at && a->pe == d.source_pe) {
    route_head back = h;
    back.hops = static_cast<std::uint16_t>(std::min<unsigned>(h.hops + most_hops / most_returns + 1, most_hops + 1));
    std::memcpy(d.payload, &back, sizeof back);
  }
  if (const std::uint32_t to = a != nullptr && a->state == remote_location::what::at ? a->pe : home_of(i);
      !scheduler::reaches(self_, to) || (lossy() && h.hops > most_hops)) [[unlikely]] {
    if (h.number != 0) tell_location(h, i, nullptr);
    fail_routed(*this, kind, d, h, lost(i, to));
    return true;
  }
  if (leave_pursuit(kind, a, d, e, size, h, i, tag)) return true;
  if (a != nullptr && a->state == remote_location::what::at) {
    a->last = next_number();
    a->used = true;
    send_on(*this, kind, d, e, size, a->pe);
    return true;
  }
  if (const std::uint32_t home = a == nullptr ? home_of(i) : self_.id(); home != self_.id()) {
    // remembered: the element may be created here before that is there
    make_location(i, home, false).last = next_number();
    send_on(*this, kind, d, e, size, home);
    return true;
  }
  return false;
}

// There is no element, and it is to be created here, if at all.
template <class Index>
slot* index_part<Index>::route_at_home(const routed_kind& kind, remote_location* a, scheduler::delivery& d,
                                       const wire::envelope& e, std::uint32_t size, const route_head& h, const Index& i,
                                       order_tag tag) {
  if (a != nullptr && !a->is_home && a->state == remote_location::what::waiting) {
    if ((h.flags & route_head::from_home) != 0 && yield_turn(kind, *a, d, e, size, h, i)) return nullptr;
    scheduler::message* m = d.detach(e, size);
    if (a->held != nullptr && h.number != 0) {
      a->held->come.push_back({h.origin, h.number, m});
      if (a->asks && h.origin == self_.id() && h.number == a->last) create_held(Index(i), *a);
    } else {
      a->append(m);
    }
    return nullptr;
  }
  if (tag.stream != 0) return pass_home(kind, a, d, e, size, h, i, tag);
  if (create_for(kind, a, h, i)) return route(kind, d, e, size, once_tried(h), i);
  const early policy = kind.policy;
  if (a != nullptr && a->state == remote_location::what::waiting && !ends() &&
      (policy != early::refuse || (a->queued != 0 && kind.counts))) {
    if ((h.flags & route_head::asks) != 0) tell_location(h, i, nullptr);
    (void)keep_early(kind, *a, d, e, size, h, i);
    return nullptr;
  }
  if (policy == early::wait && a == nullptr && !ends()) {
    remote_location& fresh = make_location(i, self_.id(), true);
    fresh.state = remote_location::what::waiting;
    if ((h.flags & route_head::asks) != 0) tell_location(h, i, nullptr);
    (void)keep_early(kind, fresh, d, e, size, h, i);
    return nullptr;
  }
  if (h.number != 0) tell_location(h, i, nullptr);
  fail_routed(*this, kind, d, h, gone(i));
  return nullptr;
}

template <class Index>
using location_message = news_message<Index, &index_part<Index>::learn>;

template <class Index>
void index_part<Index>::tell_location(const route_head& h, const Index& i, const cell_type* c) {
  location l{h.number};
  if (c != nullptr) {
    const address at = self_.address_of(*c->process);
    l = {h.number, found::here, at.slot, at.generation, c->birth, c->moves};
  } else if (const remote_location* a = find_location(i); a == nullptr || a->held == nullptr) {
    l.what = a != nullptr && a->state == remote_location::what::waiting ? found::not_yet : found::not_at_all;
  }
  if (h.origin == self_.id()) {
    learn(i, l, self_.id());
  } else {
    tell(self_, h.origin, location_message<Index>::instance, id(), 0, pack(0, l, i));
  }
}

template <class Index>
void index_part<Index>::tell_nowhere(const route_head& h, const Index& i) {
  const location l{h.number, found::not_at_all};
  if (h.origin == self_.id()) {
    learn(i, l, self_.id());
  } else {
    tell(self_, h.origin, location_message<Index>::instance, id(), 0, pack(0, l, i));
  }
}

// Messages may wait there for the answer, also where the array's end waits for them.
template <class Index>
void index_part<Index>::tell_ended(pe& self, std::uint32_t array, const route_head& h, const Index& i) {
  if (h.number == 0 || h.origin == self.id()) return;
  tell(self, h.origin, location_message<Index>::instance, array, 0, pack(0, location{h.number, found::not_at_all}, i));
}

// It is known now where messages go on. If those of others went another way before, that has to be
// empty, too.
template <class Index>
bool index_part<Index>::probe_first_home(const Index& i, remote_location& a) {
  const bool two_ways = a.asks && a.passes;
  a.asks = a.passes = false;
  if (!two_ways || !scheduler::reaches(self_, home_of(i))) return false;
  a.pe = home_of(i);
  a.slot = wire::no_slot;
  a.state = remote_location::what::waiting;
  send_route_probe(i, a);
  return true;
}

template <class Index>
void index_part<Index>::learn(const Index& i, const location& l, std::uint32_t pe) {
  remote_location* a = find_location(i);
  if (a == nullptr) return;
  // which forwards until it is told, but for holding back has to know the process
  if (a->is_home) {
    if (l.slot != wire::no_slot) registered(i, l, pe);
    return;
  }
  if (l.echo <= a->confirmed) return;
  a->confirmed = l.echo;
  // what was on its way there is lost
  const bool settled = l.echo == a->last || !scheduler::reaches(self_, a->pe);
  if (a->held != nullptr) {
    if (settled) create_held(i, *a);
    return;
  }
  // The place was forgotten since that message, and the one that asks anew is on its way: its
  // answer is to be waited for.
  if (a->asks && a->state == remote_location::what::waiting && !settled) return;
  if (settled && l.what == found::not_yet) {  // all is at the first home, but not at the element
    a->pe = pe;
    a->slot = wire::no_slot;
    a->confirmed = 0;
    a->asks = a->passes = a->expiring = false;
    a->state = remote_location::what::at;
    dispatch_all(a->take_all());
    return;
  }
  const bool unused = a->expiring && !a->used && a->queued == 0;
  if (settled && (l.what == found::not_at_all || unused)) {
    dispatch_all(erase_remote_location(i));
    return;
  }
  if (l.what != found::here) return;  // what was sent later will be heard of, too
  if (pe != a->pe && !settled) {
    if (a->state == remote_location::what::at) {
      a->state = remote_location::what::waiting;
      send_route_probe(i, *a);
    }
    return;
  }
  if (probe_first_home(i, *a)) return;
  a->pe = pe;
  a->slot = l.slot;
  a->generation = l.generation;
  if (!settled || a->state != remote_location::what::waiting) return;
  a->state = remote_location::what::at;
  dispatch_all(a->take_all());
}

template <class Index>
void index_part<Index>::pes_lost() noexcept {
  // Messages that wait here until a probe has followed the others: it may have been on the lost
  // node. And where only the first home was to be asked, as another one may be left. Entries of
  // elements that were on the lost node stay at homes, and elsewhere until they are asked for
  // (forget_lost_place): they may have left it.
  const auto is_stuck = [&](const remote_location& a) {
    const bool knows_nothing = a.slot == wire::no_slot && a.moves == 0;
    return !a.is_home &&
           (a.state == remote_location::what::waiting || (knows_nothing && !scheduler::reaches(self_, a.pe)));
  };
  std::vector<Index> stuck;
  for (auto& [i, e] : tables_->places)
    if (e.is_remote() && is_stuck(*e.there())) stuck.push_back(i);
  for (const Index& i : stuck) {
    remote_location* const a = find_location(i);
    if (a == nullptr || !is_stuck(*a)) continue;  // the messages of another one have changed it
    if (a->held != nullptr) {
      a->passes = false;
      create_held(i, *a);
    } else {
      // to the home: an element there, or elsewhere, or none any more
      dispatch_all(erase_remote_location(i));
    }
  }
  array_core::pes_lost();
  // Messages that were held back for messages that may be lost.
  scheduler::message* held = nullptr;
  for (auto& [i, e] : tables_->places) {
    if (!e.is_remote() && e.here()->order != nullptr) held = e.here()->order->in.take_held(held);
    if (e.is_remote() && e.there()->in != nullptr) held = e.there()->in->take_held(held);
  }
  dispatch_all(take_kept(held));
}

template <class Index>
struct route_probe_message {
  static slot* route(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size) {
    try {
      orrery::reader r(wire_payload(d, e, size));
      auto h = orrery::read<route_head>(r);
      const auto i = orrery::read<Index>(r);
      array_core* core = array_directory::of(self).find(e.slot);
      if (core == nullptr) {  // the array has ended here, and not yet where this came from
        d.release();
        index_part<Index>::tell_ended(self, static_cast<std::uint32_t>(h.call), h, i);
        return nullptr;
      }
      auto* part = static_cast<index_part<Index>*>(core);
      const bool has_turn = (h.flags & route_head::from_home) != 0;
      if (const auto* c = part->find_local(i)) {
        if ((h.flags & route_head::to_home) != 0 && part->keeps_at_home(i)) {
          part->keep_at_home(d, e, size, h, i, {});
          return nullptr;
        }
        d.release();
        part->tell_location(h, i, c);
        if (has_turn) part->tell_turn_over(i);
        return nullptr;
      }
      if (part->is_held(i)) {  // as good as here: its messages are put in order
        d.release();
        if (!part->way_is_clear(i, h)) part->tell_location(h, i, nullptr);
        if (has_turn) part->tell_turn_over(i);
        return nullptr;
      }
      h.flags &= route_head::to_home | route_head::from_home;
      return part->route(probing_kind, d, e, size, h, i);
    } catch (...) {
      d.fail(std::current_exception());
      return nullptr;
    }
  }
  // Earlier messages have gone the same way. The number of the array is in the place of a call's.
  static bool lost_on_its_way(pe& self, const scheduler::handler&, std::span<const std::byte> payload, std::uint32_t,
                              const scheduler::unknown_message*) noexcept {
    try {
      orrery::reader r(payload);
      const auto h = orrery::read<route_head>(r);
      const auto i = orrery::read<Index>(r);
      if (array_core* core = array_directory::of(self).find(static_cast<std::uint32_t>(h.call)))
        static_cast<index_part<Index>*>(core)->tell_nowhere(h, i);
    } catch (...) {
      self.failures().report("the loss of a question where an element is", std::current_exception());
    }
    return true;
  }
  struct route_probe_handler : control_handler {
    route_probe_handler() noexcept
        : control_handler(type_name<route_probe_message>(), &route_probe_message::route, nullptr,
                          wire::type_key<route_probe_message>()) {
      lost = &lost_on_its_way;
    }
  };
  inline static const route_probe_handler instance;
};

// A probe of the waits (scheduler/deadlock_detector.cpp), which follows a call; also to an element
// whose destructor runs, by its home, which knows where it has ended.
template <class Index>
struct wait_probe_message {
  static slot* route(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size) {
    try {
      const auto payload = wire_payload(d, e, size);
      orrery::reader r(payload);
      auto h = orrery::read<route_head>(r);
      const auto i = orrery::read<Index>(r);
      auto* part = static_cast<index_part<Index>*>(array_directory::of(self).find(e.slot));
      slot* const at = part != nullptr ? part->find_or_ending(i) : nullptr;
      if (part == nullptr || (at == nullptr && (h.flags & route_head::tried) != 0)) {
        d.release();
        return nullptr;
      }
      const auto ended_at = at == nullptr ? part->place_of_end(i) : std::nullopt;
      if (at == nullptr && !ended_at) return part->route(following_kind, d, e, size, h, i);
      h.flags |= route_head::tried;  // there, or not at all
      bytes b = at == nullptr ? pack(0, h, i) : bytes();
      const auto probe = after_section(payload, r);
      b.insert(b.end(), probe.begin(), probe.end());
      const std::uint32_t array = e.slot;
      d.release();  // its sender may write there again
      if (at != nullptr) {
        self.deadlocks().follow(b, *at);
      } else {
        tell(self, *ended_at, instance, array, 0, b);
      }
    } catch (...) {
      d.fail(std::current_exception());
    }
    return nullptr;
  }
  inline static const control_handler instance{type_name<wait_probe_message>(), &route, nullptr,
                                               wire::type_key<wait_probe_message>()};
};

template <class Index>
address index_part<Index>::follow(const Index& i, std::span<const std::byte> probe) {
  if (const slot* at = find_or_ending(i)) return self_.address_of(*at);
  bytes b = pack(0, route_head{0, 0, self_.id(), 0, 0}, i);
  b.insert(b.end(), probe.begin(), probe.end());
  tell(self_, self_.id(), wait_probe_message<Index>::instance, id(), 0, b);
  return {};
}

template <class Index>
void index_part<Index>::send_route_probe(const Index& i, remote_location& a) {
  a.last = next_number();
  tell(self_, a.pe, route_probe_message<Index>::instance, id(), 0,
       pack(0, route_head{a.last, id(), self_.id(), 0, 0}, i));
}

// Twice unused: asked whether it can go.
template <class Index>
void index_part<Index>::sweep() {
  std::vector<Index> unused;
  for (auto& [i, e] : tables_->places) {
    if (!e.is_remote()) continue;
    remote_location* a = e.there();
    if (a->is_home || a->state != remote_location::what::at) continue;
    if (a->used) {
      a->used = a->expiring = false;
    } else if (!a->expiring) {
      a->expiring = true;
      unused.push_back(i);
    }
  }
  for (const Index& i : unused)  // the answer can come at once, if a node is lost
    if (remote_location* a = find_location(i); a != nullptr && a->expiring) send_route_probe(i, *a);
  sweep_at_ = cached_ + settings_.cached / 2 + 1;
}

}  // namespace orrery::detail
