// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/call.hpp>
#include <orrery/process/runtime.hpp>
#include <orrery/process/spawn.hpp>
#include <orrery/service/detail/walk_manager.hpp>
#include <orrery/service/session_core.hpp>
#include <orrery/wire/error.hpp>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace orrery::service {

namespace {
// Handles in other programs call them: a program that has made a list answers them, also if nothing
// in it calls them.
[[gnu::used, maybe_unused]] void offer(const remote<walk_manager>& m) {
  (void)m->open({}, consistency::total);
  (void)m->head();
  (void)m->free();
  (void)m->describe();
  (void)m->pass(0, {}, {});
  m->set_processes(0);
  m->set_parameters(0, 0);
  m->finish_requests();
  m->end();
}
}  // namespace

void check_fill(std::uint64_t items, std::uint64_t held, std::uint64_t room) {
  if (items != 0 && held != 0)
    throw usage_error(errc::bad_argument,
                      fmt::format("walking_list::fill: the list is not empty, it has {} items: fill a new one, or "
                                  "insert these",
                                  held));
  if (items > room)
    throw usage_error(errc::bad_argument,
                      fmt::format("walking_list::fill: there is room for {} items, not for {}: make the list with more "
                                  "processes for each PE (P), or with more items for each process (G)",
                                  room, items));
}

void walk_manager::join(const std::vector<remote<walk_manager>>& all, std::uint32_t self, spare_order o) {
  managers_ = all;
  self_ = self;
  strategy_ = make_spare_strategy(o);
  places_.assign(all.size(), {most_, 0});  // until they say something
  if (all.size() == 1) return;
  when_lost(all[(self + 1) % all.size()]->mark(),
            [me = this_process<walk_manager>()](const node_lost& e) { me->next_lost(e.what()); });
}

remote<presence> walk_manager::mark() {
  if (!mark_) mark_ = spawn<presence>(here());
  return mark_;
}

void walk_manager::next_lost(const std::string& why) {
  const std::size_t lost = (self_ + 1) % managers_.size();
  for (std::size_t i = 0; i < managers_.size(); ++i)
    if (i != lost) post(managers_[i])->list_lost(why);
}

void walk_manager::list_lost(const std::string& why) {
  if (!lost_.empty()) return;
  lost_ = why;
  const std::vector<remote<walk_gate>> gates = gates_;  // a post may park; sessions end meanwhile
  for (const auto& g : gates)
    if (std::ranges::find(gates_, g) != gates_.end()) post(g)->fail(why);
}

remote<walk_process> walk_manager::make_head() { return own_head_ = make_process(true); }

void walk_manager::set_processes(std::uint64_t count) {
  most_ = count;
  all_.reserve(count);
  while (all_.size() < count) all_.push_back(make_process(false));
  few_ = count / 4;
}

void walk_manager::set_parameters(std::uint32_t granularity, std::uint32_t forwards) {
  walk_settings& s = settings();
  s.tunes_granularity = granularity == tuning::automatic;
  s.tunes_forwards = forwards == tuning::automatic;
  if (!s.tunes_granularity) s.granularity = granularity;
  if (!s.tunes_forwards) s.forwards = forwards;
  show_granularity(s.granularity);
  show_forwards(s.forwards);
}

spare walk_manager::take(const walk_link& behind, std::span<const std::byte> items) {
  places_[self_] = place();
  const auto first = static_cast<std::uint32_t>(strategy_->choose(places_, self_));
  const auto others = static_cast<std::uint32_t>(managers_.size() - 1);
  const spare s = first == self_ ? pass(others, behind, items) : managers_[first]->pass(others, behind, items);
  if (s.process) places_[s.manager] = s.place;
  return s;
}

spare walk_manager::pass(std::uint32_t left, const walk_link& behind, std::span<const std::byte> items) {
  if (free() != 0) return give(behind, items);
  if (left == 0) return {};
  return managers_[(self_ + 1) % managers_.size()]->pass(left - 1, behind, items);
}

spare walk_manager::give(const walk_link& behind, std::span<const std::byte> items) {
  const auto p = free_.empty() ? all_[begun_++] : free_.back();
  if (!free_.empty()) free_.pop_back();
  if (settings().tunes_granularity && free() < few_) {
    settings().granularity *= 2;
    few_ /= 2;
  }
  show_granularity(settings().granularity);
  const spare_place left = place();
  p->begin(behind, items);  // not a post: who asked may send to it before that would come
  return {p, self_, left};
}

std::uint64_t walk_manager::free() const {
  const std::uint64_t used = begun_ - free_.size();
  return used < most_ ? std::min<std::uint64_t>(most_, all_.size()) - used : 0;
}

remote<walk_gate> walk_manager::open(remote<presence> session, consistency order) {
  if (!lost_.empty()) throw node_lost(verbatim, lost_);
  if (closed_) throw ended_for_a_session();
  const remote<walk_gate> gate = make_gate(head_, order);
  gates_.push_back(gate);
  when_gone(session, [me = remote<walk_manager>(this_process<walk_manager>()), gate] { me->close(gate); });
  return gate;
}

void walk_manager::close(remote<walk_gate> gate) {
  if (closed_) return;
  gate->end_session();
  end_if_unused(gate);
}

void walk_manager::end_if_unused(remote<walk_gate> gate) {
  if (!gate->is_unused()) return;
  if (closed_) return;  // end() destroys it, when its last answer is there
  if (std::erase(gates_, gate) != 0) destroy(gate);
}

walk_report walk_manager::describe() {
  const walk_settings& s = settings();
  walk_report r{.processes = most_,
                .free = free(),
                .items = s.items,
                .requests = s.requests,
                .jumps = s.jumps,
                .stale = s.stale,
                .refused = s.refused,
                .shortcuts = shortcuts(),
                .granularity = s.granularity,
                .forwards = s.forwards,
                .pe = this_pe(),
                .tunes_granularity = s.tunes_granularity};
  const std::vector<remote<walk_gate>> gates = gates_;
  for (const auto& g : gates) {
    try {
      r.window = std::max(r.window, g->report().window);
    } catch (const process_gone&) {  // its session has ended meanwhile
    }
  }
  return r;
}

range_report walk_manager::report() {
  const walk_report d = describe();
  range_report r;
  r.items = d.items;
  r.requests = d.requests;
  r.pe = d.pe;
  r.window = d.window;
  return r;
}

bytes walk_manager::serve(const batch_head&, std::span<const std::byte>) {
  throw usage_error(errc::bad_argument, "the manager of a walking list takes no requests: open a session of the list");
}

void walk_manager::finish_requests() {
  closed_ = true;
  std::vector<future<void>> all;
  for (const auto& g : gates_) all.push_back(start(g)->finish_requests());
  for (auto& f : all) {
    try {
      f.get();
    } catch (const process_gone&) {  // its session has ended meanwhile
    }
  }
}

void walk_manager::end() {
  if (mark_) {
    mark_->leave();
    destroy(std::exchange(mark_, {}));
  }
  for (const auto& g : std::exchange(gates_, {})) destroy(g);
  free_.clear();
  begun_ = 0;
  for (const auto& p : std::exchange(all_, {})) destroy(p);
  if (own_head_) destroy(std::exchange(own_head_, {}));
}

}  // namespace orrery::service
