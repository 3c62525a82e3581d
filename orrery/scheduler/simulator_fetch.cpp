// SPDX-License-Identifier: Apache-2.0
// The part of the simulator that asks early for the memory of PEs that will run soon.
#include <orrery/scheduler/prefetch.hpp>
#include <orrery/scheduler/simulator.hpp>

#include <algorithm>

namespace orrery::scheduler {

namespace {
constexpr std::size_t worthwhile = 128;  // PEs: fewer stay in the cache by themselves
}

// Calls f with the PE, what the simulator knows of it, and the event, for who is due after n
// others.
template <class F>
void simulator::for_pe_ahead(std::size_t n, F f) const noexcept {
  if (const event* e = queue_.ahead(n); e != nullptr && (e->what & (is_fault | is_drive)) == 0)
    f(pes_[e->what], states_[e->what], *e);
}

// Problem: in a large world a PE that is due has been in no cache since it ran last, and all that
// it touches, some fifty lines in as many pages, would be waited for one after the other; that is
// most of the time of a simulation. But who will run next is known. So each of them comes through
// steps while others run, in which only what earlier steps have asked for is read: what the
// simulator knows of it; the PE and the record that it will receive; what both point to, and where
// the PE sent to when it ran last, as it will mostly send there again.
void simulator::fetch_next() const noexcept {
  if (pes_.size() < worthwhile) return;
  const auto for_each_sent_to = [](const simulated_pe& s, auto f) {
    for (const simulated_link* l : s.sent_to)
      if (l != nullptr) f(*l);
  };
  for_pe_ahead(9, [this](pe* const&, const simulated_pe&, const event& e) {
    fetch_lines(&pes_[e.what], 1);
    fetch_lines(&states_[e.what], 2);
    if (e.link != nullptr) fetch_lines(e.link, 1);
  });
  for_pe_ahead(7, [&](pe* const& p, const simulated_pe& s, const event& e) {
    fetch_lines(p, 6);
    fetch_lines(&p->watch_, 2);
    fetch_lines(&p->layers_, 2);
    fetch_lines(&p->sim_, 7);
    fetch_lines(&p->shutdown_, 2);
    fetch_lines(s.arrivals.memory(), 2);
    if (e.link != nullptr) {
      fetch_lines(e.link->in, 1);
      fetch_lines(e.link->out, 2);
    }
    for_each_sent_to(s, [](const simulated_link& l) { fetch_lines(&l, 1); });
  });
  for_pe_ahead(5, [&](pe* const& p, const simulated_pe& s, const event& e) {
    if (e.link != nullptr) fetch_lines(e.link->in->ring.position(), 8);
    p->layers_.for_each([](const layer_state& a) { fetch_lines(&a, 1); });
    fetch_lines(p->processes().begin_of_table(), 6);
    const auto [table, bytes] = p->links_.table();
    fetch_lines(table, std::min<std::size_t>(bytes / 64, 8));
    for_each_sent_to(s, [this](const simulated_link& l) {
      fetch_lines(l.out, 2);
      fetch_lines(&states_[l.to], 1);
    });
  });
  for_pe_ahead(4, [&](pe* const&, const simulated_pe& s, const event&) {
    for_each_sent_to(s, [this](const simulated_link& l) {
      fetch_lines(l.out->ring.position(), 4);
      fetch_lines(states_[l.to].arrivals.memory(), 2);
    });
  });
  static_assert(layer_state::fetch_steps <= 4);
  for (int step = 0; step < layer_state::fetch_steps; ++step)
    for_pe_ahead(3 - static_cast<std::size_t>(step), [step](pe* const& p, const simulated_pe&, const event&) {
      p->layers_.for_each([step](const layer_state& a) { a.fetch(step); });
    });
}

}  // namespace orrery::scheduler
