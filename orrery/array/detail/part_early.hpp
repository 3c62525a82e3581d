// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/part_pursuit.hpp>
#include <orrery/scheduler/reach.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <algorithm>
#include <utility>

// Messages that are there before their element: at its home (paper, "Message delivery": the state
// Buffering), and on the PE where it is created, if that has sent to it before.
namespace orrery::detail {

// At the home of an index where nothing was created yet. Nobody can be told to hold back messages
// for a process that there is not, so those that are too many fail: false.
template <class Index>
bool index_part<Index>::keep_early(const routed_kind& kind, remote_location& a, scheduler::delivery& d,
                                   const wire::envelope& e, std::uint32_t size, const route_head& h, const Index& i) {
  const bool beside = d.form == wire::payload_form::owned;
  const std::uint64_t needed = size + (beside ? std::uint64_t{e.padding} * wire::page_bytes : 0);
  if (early_bytes_ + needed > settings_.early_bytes) {
    fail_routed(*this, kind, d, h, too_many_early(text_of(i), settings_.early_bytes));
    return false;
  }
  early_bytes_ += needed;
  a.early += needed;
  over();  // until there is somebody to execute it
  a.append(d.detach(e, size));
  return true;
}

// Follows the class's policy for messages to an index without an element: true if one is made.
template <class Index>
bool index_part<Index>::create_for(const routed_kind& kind, remote_location* a, const route_head& h, const Index& i) {
  if (kind.creation == nullptr) return false;
  if (a != nullptr && !a->is_home) return false;
  if ((h.flags & route_head::tried) != 0 || ends()) return false;
  // a guest has no part of the array
  const bool at_sender = kind.policy == early::create_at_sender && about().pes.contains(h.origin);
  const std::uint32_t at = at_sender ? h.origin : self_.id();
  begins();
  tell(self_, self_.id(), *kind.creation, id(), 0, pack(0, creation{{}, at, 0, false}, i));
  return true;
}

template <class Index>
void index_part<Index>::fail_early() {
  std::vector<Index> waiting;
  for (const auto& [i, e] : tables_->places)
    if (e.is_remote() && e.there()->is_home && e.there()->state == remote_location::what::waiting) waiting.push_back(i);
  for (const Index& i : waiting) dispatch_all(erase_remote_location(i));
}

template <class Index>
scheduler::message* index_part<Index>::take_waiting() noexcept {
  scheduler::message* all = nullptr;
  const auto add = [&](scheduler::message* m) {
    m->next = all;
    all = m;
  };
  all = take_kept(all);
  for (auto& [i, e] : tables_->places) {
    if (!e.is_remote()) continue;
    remote_location& a = *e.there();
    if (a.in != nullptr) all = a.in->take_held(all);
    for (scheduler::message* m = a.take_all(); m != nullptr;) add(std::exchange(m, m->next));
    if (const auto held = std::move(a.held); held != nullptr) {
      add(held->creation);
      for (const auto& m : held->come) add(m.what);
    }
  }
  return all;
}

// A creation that finds messages of this PE under way waits behind a probe, too, and so does what
// is sent here meanwhile. The first home sends it before what had come early, and forwards
// everything that comes later to this PE: the probe comes here last.
template <class Index>
bool index_part<Index>::creation_waits(const Index& i) const {
  const remote_location* a = find_location(i);
  return a != nullptr && !a->is_home && a->unsettled() && scheduler::reaches(self_, a->pe);
}
template <class Index>
void index_part<Index>::hold_creation(const Index& i, scheduler::message* m) {
  remote_location& a = *find_location(i);
  a.held = wire::make_unique<held_creation>(m);
  // Messages of other PEs that have waited here, as those that will come: by their numbers.
  for (scheduler::message* waiting = a.take_all(); waiting != nullptr;) {
    scheduler::message* const one = std::exchange(waiting, waiting->next);
    route_head h;
    std::memcpy(&h, one->payload(), sizeof h);
    if (h.number != 0 && h.origin != self_.id()) {
      a.held->come.push_back({h.origin, h.number, one});
    } else {
      a.append(one);
    }
  }
  // then its message serves as a probe
  const bool asking = a.asks && a.state == remote_location::what::waiting;
  a.state = remote_location::what::waiting;
  if (!asking && !probe_first_home(i, a)) send_route_probe(i, a);
}
template <class Index>
bool index_part<Index>::is_held(const Index& i) const noexcept {
  const remote_location* a = find_location(i);
  return a != nullptr && a->held != nullptr;
}
template <class Index>
bool index_part<Index>::way_is_clear(const Index& i, const route_head& h) {
  remote_location& a = *find_location(i);
  if (h.origin != self_.id() || h.number != a.last) return false;
  create_held(i, a);
  return true;
}
template <class Index>
void index_part<Index>::create_held(const Index& i, remote_location& a) {
  if (probe_first_home(i, a)) return;
  a.state = remote_location::what::at;
  a.confirmed = a.last;
  const auto held = std::move(a.held);
  std::ranges::sort(held->come, {}, [](const auto& m) { return std::pair(m.origin, m.number); });
  scheduler::message* later = a.take_all();
  for (const auto& m : held->come) a.append(m.what);
  while (later != nullptr) a.append(std::exchange(later, later->next));
  dispatch(self_, held->creation);
}

}  // namespace orrery::detail
