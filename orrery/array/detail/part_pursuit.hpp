// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/part_migration.hpp>
#include <orrery/scheduler/deadlock_detector.hpp>
#include <orrery/scheduler/reach.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstring>
#include <utility>

// Messages whose element keeps moving (home_queue.hpp).
//
// A message counts the PEs that it was sent on to, and the moves in which its element has taken it
// along. From most_follows on it goes to the home of the index (route_head::to_home) and waits
// there. The home sends those that wait one after the other (from_home) to where the element is.
// There such a message goes before all others that wait, so that nothing moves the element before.
// When it is executed, or waits there for others itself, the home is told, and sends the next. One
// whose element has left before comes back.
//
// Messages that are sent while their element rests all make the same detours, also the probes
// behind them: none overtakes another.
namespace orrery::detail {

/// At the home: a message that was sent from there is executed.
template <class Index>
struct turn_message {
  static slot* route(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size) {
    try {
      orrery::reader r(wire_payload(d, e, size));
      const auto i = orrery::read<Index>(r);
      array_core* part = array_directory::of(self).find(e.slot);
      d.release();
      if (part != nullptr) static_cast<index_part<Index>*>(part)->turn_over(i);
    } catch (...) {
      d.fail(std::current_exception());
    }
    return nullptr;
  }
  inline static const control_handler instance{type_name<turn_message>(), &route, nullptr,
                                               wire::type_key<turn_message>()};
};

// A message that is not at its element. True if it goes to the home, or waits there now.
template <class Index>
bool index_part<Index>::leave_pursuit(const routed_kind& kind, const remote_location* a, scheduler::delivery& d,
                                      const wire::envelope& e, std::uint32_t size, route_head h, const Index& i,
                                      order_tag tag) {
  if ((h.flags & route_head::to_home) == 0 && h.follows() < most_follows) [[likely]]
    return false;
  if (!kind.waits_at_home || a == nullptr || a->state != remote_location::what::at || lossy()) return false;
  const std::uint32_t home = home_of(i);
  if (home == self_.id()) {
    keep_at_home(d, e, size, h, i, tag);
    return true;
  }
  if (!scheduler::reaches(self_, home)) return false;
  h.flags |= route_head::to_home;
  std::memcpy(d.payload, &h, sizeof h);
  send_on(*this, kind, d, e, size, home);
  return true;
}

// At its element, after a detour over the home.
template <class Index>
slot* index_part<Index>::end_pursuit(cell_type& c, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size,
                                     route_head h, const Index& i, order_tag tag) {
  if ((h.flags & route_head::to_home) != 0 && keeps_at_home(i) && !lossy()) {
    keep_at_home(d, e, size, h, i, tag);
    return nullptr;
  }
  if (h.number != 0) tell_location(h, i, &c);
  slot& s = *c.process;
  bool waits = s.depth != 0 && !runs_now(s);  // a method is parked: the element stays
  waits |= tag.stream != 0 && !c.order_of().in.in_turn(tag);
  const bool turn_ends = waits && (h.flags & route_head::from_home) != 0;
  h.flags &= static_cast<std::uint16_t>(~(route_head::to_home | (turn_ends ? route_head::from_home : 0U)));
  std::memcpy(d.payload, &h, sizeof h);
  if (turn_ends) tell_turn_over(i);
  if (h.call != 0) self_.deadlocks().suspect_if_waiting(s);
  if (tag.stream != 0) return pass_element(c, d, e, size, i, tag);
  scheduler::message* first = s.last != nullptr ? s.last->next : nullptr;
  if (first == nullptr || !s.has_object || s.depth != 0) return &s;
  const auto* const comes_first = reinterpret_cast<const scheduler::handler*>(first->head.handler);
  if (comes_first->method == "(migration)") return &s;
  if (comes_first == elements_.migrated && first == s.last) return &s;
  scheduler::message* m = d.detach(e, size);
  if (comes_first == elements_.migrated) {
    m->next = std::exchange(first->next, m);
  } else {
    s.push_front(m);
  }
  s.charge += m->charge();
  return nullptr;
}

// A message from the home has come where others wait for the answer to a probe. That may be waiting
// at the home until this message has had its turn: so it does not wait with them, but goes back.
// True if it has gone. The home hears where the element is whatever waits there.
template <class Index>
bool index_part<Index>::yield_turn(const routed_kind& kind, const remote_location& a, scheduler::delivery& d,
                                   const wire::envelope& e, std::uint32_t size, route_head h, const Index& i) {
  const std::uint32_t home = home_of(i);
  if (a.held == nullptr && home != self_.id() && scheduler::reaches(self_, home)) {
    h.flags |= route_head::to_home;
    std::memcpy(d.payload, &h, sizeof h);
    send_on(*this, kind, d, e, size, home);
    return true;
  }
  h.flags &= static_cast<std::uint16_t>(~(route_head::to_home | route_head::from_home));
  std::memcpy(d.payload, &h, sizeof h);
  tell_turn_over(i);
  return false;
}

template <class Index>
void index_part<Index>::keep_at_home(scheduler::delivery& d, const wire::envelope& e, std::uint32_t size, route_head h,
                                     const Index& i, order_tag tag) {
  const Index at = i;  // it may lie in the message
  const bool is_back = (h.flags & route_head::from_home) != 0;
  const bool again = is_back || h.moves() != 0;
  h.flags &= static_cast<std::uint16_t>(route_head::one_move - 1U) &
             static_cast<std::uint16_t>(~(route_head::to_home | route_head::from_home));
  h.hops = 1;
  std::memcpy(d.payload, &h, sizeof h);
  scheduler::message* m = d.detach(e, size);
  auto& queue = tables_->home_queues[at];
  if (queue == nullptr) queue = wire::make_unique<home_queue>();
  queue->add(m, tag, again);
  if (is_back) queue->came_back();
  send_kept(at);
}

template <class Index>
void index_part<Index>::send_kept(const Index& i) {
  home_queue* queue = find_home_queue(i);
  if (queue == nullptr || queue->sends) return;
  queue->sends = true;
  while (scheduler::message* m = queue->next()) {
    route_head h;
    std::memcpy(&h, m->payload(), sizeof h);
    h.flags |= route_head::from_home;
    std::memcpy(m->payload(), &h, sizeof h);
    dispatch(self_, m);
  }
  queue->sends = false;
  if (queue->is_over()) tables_->home_queues.erase(i);
}

template <class Index>
void index_part<Index>::turn_over(const Index& i) {
  home_queue* queue = find_home_queue(i);
  if (queue == nullptr) return;
  queue->turn_over();
  send_kept(i);
}

template <class Index>
void index_part<Index>::tell_turn_over(const Index& i) {
  const std::uint32_t home = home_of(i);
  if (home == self_.id()) {
    turn_over(Index(i));
  } else {
    tell(self_, home, turn_message<Index>::instance, id(), 0, pack(0, i));
  }
}

template <class Index>
void index_part<Index>::release_kept(const Index& i) {
  const auto it = tables_->home_queues.find(i);
  if (it == tables_->home_queues.end()) return;
  const wire::unique_ptr<home_queue> queue = std::move(it->second);
  tables_->home_queues.erase(it);
  while (scheduler::message* m = queue->take()) dispatch(self_, m);
}

template <class Index>
scheduler::message* index_part<Index>::take_kept(scheduler::message* rest) noexcept {
  for (auto& [i, queue] : tables_->home_queues)
    while (scheduler::message* m = queue->take()) {
      m->next = rest;
      rest = m;
    }
  tables_->home_queues.clear();
  return rest;
}

}  // namespace orrery::detail
