// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/run_state.hpp>

#include <orrery/scheduler/causality.hpp>
#include <orrery/scheduler/deadlock_detector.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/scheduler/pe.hpp>
#include <orrery/scheduler/prefetch.hpp>
#include <orrery/scheduler/trace.hpp>

#include <fmt/format.h>

namespace orrery::scheduler {

namespace {

std::string name_of(const handler* h) {
  return h == nullptr ? std::string{"?"} : fmt::format("{}::{}", h->class_name, h->method);
}

}  // namespace

pe& run_state::whole() noexcept { return static_cast<pe&>(*this); }

void run_state::require_process() const {
  if (active_ == nullptr) throw usage_error(errc::not_in_process);
}

void run_state::ready_all(fiber* list) {
  while (list != nullptr) {
    fiber* next = list->next;
    list->next = nullptr;
    if (list->room != nullptr) list->room->over = true;
    ready(*list);
    list = next;
  }
}

void run_state::suspect(slot& s) { whole().deadlocks().suspect(s); }

void run_state::watch_begin(const activation& a) noexcept {
  if (watch_->trace != nullptr) watch_->trace->begin(a, address_of(*a.process));
  if (watch_->order != nullptr) watch_->order->begin(a);
}
void run_state::watch_end(const activation& a) noexcept {
  if (watch_->trace != nullptr) watch_->trace->end(a);
  if (watch_->order != nullptr) watch_->order->end(a);
}
void run_state::watch_complete(sink& s) noexcept {
  if (watch_->order != nullptr) watch_->order->give_anew(&s);
}

slot& run_state::allocate_new_slot() {
  if (processes_.used() == jump_prefetcher::worthwhile) prefetcher_.activate(processes_.capacity());
  slot& s = processes_.take_new();
  ++count_.processes;
  ++count_.spawned;
  return s;
}

void run_state::free_slot(slot& s) noexcept {
  pe& self = whole();
  const address gone = address_of(s);
  if (s.has_extra) self.flow().drop_extra(s);
  processes_.close(s);
  --count_.processes;
  for (message* m = s.take_all(); m != nullptr;) {
    message* next = m->next;
    delivery d;
    d.load(self, *m);
    d.fail(std::make_exception_ptr(process_gone(fmt::format(
        "{} at {}, which was destroyed before the message was executed", name_of(d.method), to_string(gone)))));
    m = next;
  }
  processes_.give_back(s);
  if (s.named) [[unlikely]] {
    s.named = false;
    self.owner().layer()->after_end(self, gone);
  }
  if (s.watched) [[unlikely]] {
    s.watched = false;
    self.layers().for_each([&](layer_state& l) { l.process_ended(gone); });
  }
}

void run_state::destroy(slot& s) {
  // The destructor is a method like any other: it may park.
  s.state = process_state::running;
  activation a{&s, nullptr, nullptr};
  push_activation(a);
  s.active = &a;
  s.depth = 1;
  end_object(s);
  pop_activation(a);
  s.depth = 0;
  free_slot(s);
}

void run_state::end_object(slot& s) noexcept {
  void* object = s.object();
  s.has_object = false;
  s.dying = true;
  if (s.named) [[unlikely]]
    whole().owner().layer()->before_end(whole(), s);
  s.cls()->destroy(object);
}

// Where many processes are runnable, the next ones are in no cache: since they were put into the
// queue all the others have run. So their lines are asked for while others run, one step of what
// leads to what at a time: the slot, the object and the last message, the first message, the rest
// of both.
void run_state::fetch_ahead() const noexcept {
  const auto at = [&](std::size_t n) -> const slot* {
    const run_queue::entry e = runnable_.ahead(n);
    return e.is_slot() ? e.as_slot() : nullptr;
  };
  if (const slot* s = at(fetched_ahead)) fetch_lines(s, 1);
  if (const slot* s = at(4); s != nullptr && s->has_messages()) {
    fetch_lines(s->last, 1);
    if (s->has_object && s->apart) fetch_lines(s->where_apart(), 4);
  }
  if (const slot* s = at(3); s != nullptr && s->has_messages()) fetch_lines(s->last->next, 1);
  if (const slot* s = at(2); s != nullptr && s->has_messages()) {
    const message* first = s->last->next;
    fetch_lines(first + 1, 1);
    fetch_lines(s->last + 1, 1);
    fetch_lines(first->next, 2);
  }
}

}  // namespace orrery::scheduler
