// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/detail/shared_waits.hpp>

#include <utility>

namespace orrery::detail {

namespace {

// Takes over a hold.
void tell(pe& self, following_state<void>& s) {
  s.wait.on = nullptr;
  resolve<void>(self, &s, [] {});
}

}  // namespace

/// One that waits; on the stack of its method.
struct shared_waits::one : scheduler::sink {
  one(shared_waits& of, const scheduler::sink& result, const pe& self) : in(of), at(of.last_) {
    way.on = &result;
    route = &way;
    home = self.id();
    // what a report says of the wait
    target = result.target;
    method = result.method;
    // so that a probe follows the wait when it begins, as for a future
    on_done = [](pe&, scheduler::sink&) {};
    *at = this;
    in.last_ = &next;
  }
  one(const one&) = delete;
  one& operator=(const one&) = delete;
  ~one() { leave(); }
  /// It is not in the list any more.
  void leave() noexcept {
    if (at == nullptr) return;
    *at = next;
    (next != nullptr ? next->at : in.last_) = at;
    at = nullptr;
  }

  shared_waits& in;
  one** at;  ///< what points to it in the list; null: it is not in there
  one* next = nullptr;
  followed_wait way;
};

bool shared_waits::wait(const scheduler::sink& result, std::int64_t deadline_ns) {
  pe& self = here_pe();
  self.require_process();
  one w(*this, result, self);
  if (deadline_ns >= 0) return self.wait_until(w, deadline_ns);
  self.wait(w);
  return true;
}

future<void> shared_waits::told(const scheduler::sink& result) {
  pe& self = here_pe();
  auto* const s = future_access<void>::make_following(self, result);
  future_access<void>::owner owned(s);
  const bool there = result.state != scheduler::sink::status::waiting;
  if (!there) followers_.push_back(s);
  s->hold();
  if (there) tell(self, *s);
  return future_access<void>::wrap(std::move(owned));
}

void shared_waits::tell_all(pe& self) {
  while (first_ != nullptr) {
    one& w = *first_;
    w.leave();
    w.state = scheduler::sink::status::value;
    self.complete(w);  // it goes on later
  }
  for (following_state<void>* const s : std::exchange(followers_, {})) tell(self, *s);
}

}  // namespace orrery::detail
