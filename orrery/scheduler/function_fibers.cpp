// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/function_fibers.hpp>

#include <orrery/scheduler/fiber_pool.hpp>
#include <orrery/scheduler/pe.hpp>
#include <orrery/scheduler/pe_parts.hpp>
#include <orrery/scheduler/unbegun.hpp>

#include <exception>

namespace orrery::scheduler {

fiber* function_fibers::make(void (*entry)(fiber&, void*), void* argument, std::size_t stack_bytes) {
  fiber* const f = unbegun::make(entry, argument, stack_bytes);
  ++count_;
  return f;
}

void function_fibers::begin() { of_.fibers_->finish(); }

void function_fibers::end(slot& s) noexcept {
  fiber& self = *of_.current_;
  if (of_.watch_ != nullptr && of_.active_ != nullptr) [[unlikely]]
    of_.watch_end(*of_.active_);
  of_.active_ = nullptr;
  s.active = nullptr;
  of_.free_slot(s);
  of_.fibers_->finished = &self;
  --count_;
  fiber& next = of_.fibers_->take_loop();
  of_.current_ = &next;
  leave_fiber(self, next);
}

bool function_fibers::await_message(slot& s, std::int64_t deadline_ns) {
  fiber& self = *of_.current_;
  if (of_.refusing() || self.cancelled) {
    if (s.dying && !of_.stopping()) {  // and it goes on, and receives again
      of_.yield();
      throw stopped("receive: the process was destroyed");
    }
    of_.shutdown().refuse("receive");
  }
  if (of_.flow().over_limit(s)) [[unlikely]]  // nothing in it is what the process waits for
    of_.flow().excess().raise(s);
  bool timed_out = false;
  s.state = process_state::receiving;
  if (deadline_ns < 0) {
    of_.park();
  } else {
    timer t{&self, &s};
    const auto it = of_.timers_.emplace(deadline_ns, &t);
    of_.park();
    if (!t.fired) of_.timers_.erase(it);
    timed_out = t.fired;
  }
  if (self.cancelled) std::rethrow_exception(of_.shutdown().ending("receive"));
  return !timed_out;
}

}  // namespace orrery::scheduler
