// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/future.hpp>

#include <orrery/process/detail/local_waits.hpp>
#include <orrery/scheduler/deadlock_detector.hpp>
#include <orrery/scheduler/node.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <limits>

namespace orrery::detail {

void drop_elsewhere(future_state_base& s) noexcept {
  here_pe().owner().local(s.k->home).links().run_errand(
      [](void* state) {
        auto* base = static_cast<future_state_base*>(state);
        base->drop();
      },
      &s);
}

namespace {

// True if the program ended before the call did. One that has begun, and then has had to stop,
// names something else.
bool is_refusal(const scheduler::handler& method, const std::exception_ptr& why) noexcept {
  try {
    std::rethrow_exception(why);
  } catch (const stopped& e) {
    const std::string_view said = e.what();
    const std::size_t at = said.find(method.method);
    return at != std::string_view::npos && said.substr(0, at).ends_with("::") &&
           said.substr(0, at - 2).ends_with(method.class_name);
  } catch (...) {
    return false;
  }
}

}  // namespace

void report_untaken(scheduler::sink& s) noexcept {
  pe* const here = scheduler::current_pe;
  if (here == nullptr) return;  // the world has ended
  if (s.method != nullptr) {
    if (here->stopping() && is_refusal(*s.method, s.error)) local_waits::of(*here).count_dropped_call(*s.method);
    here->failures().report_post(s.method, s.error);
  } else {
    here->failures().report("what follows a call (then, when_all, when_any) failed, and nobody waits for its result",
                            s.error);
  }
}

void end_untaken(future_state_base& s) noexcept {
  if (std::uncaught_exceptions() != 0) s.taken = true;
}

const scheduler::sink* followed_wait::part(std::size_t i) const noexcept {
  if (i != 0) return nullptr;
  const scheduler::sink* const s = on != nullptr ? on : in != nullptr ? in->waiting_on : nullptr;
  return s != nullptr && s->state == scheduler::sink::status::waiting ? s : nullptr;
}

const scheduler::fiber* running_fiber(const pe& self) noexcept { return self.running(); }

void suspect_waiter(pe& self, const scheduler::sink& s) {
  if (s.waiter == nullptr) return;
  for (scheduler::activation* a = s.waiter->active; a != nullptr; a = a->below)
    self.deadlocks().suspect_if_waiting(*a->process);
}

void throw_other_pe(const scheduler::sink& k) {
  throw usage_error(errc::bad_argument,
                    fmt::format("future: it belongs to PE {} and was used on PE {}", k.home, here_pe().id()));
}

void throw_awaited() {
  throw usage_error(errc::bad_argument,
                    "future: another method or coroutine waits for it already; only one can, and gets the result");
}

void resume_coroutine(pe&, future_state_base& s) {
  std::coroutine_handle<>::from_address(s.continuation_data).resume();
}

std::int64_t deadline_after(time_limit d) noexcept {
  constexpr std::int64_t past = 1;  // no deadline is below 0
  std::int64_t at = 0;
  if (__builtin_add_overflow(transport::now_ns(), d.time().count(), &at))
    return std::numeric_limits<std::int64_t>::max();
  return std::max(at, past);
}

}  // namespace orrery::detail
