// SPDX-License-Identifier: Apache-2.0
// A PE that has nothing to run: the work that waited for that, then it spins, says that it rests, sleeps.
#include <orrery/scheduler/io.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/scheduler/pe.hpp>
#include <orrery/scheduler/trace.hpp>

#include <algorithm>
#include <exception>
#include <memory>
#include <utility>

#include <sched.h>

namespace orrery::scheduler {
namespace {

constexpr int yields_before_sleep = 20;      // when PEs share cores
constexpr std::int64_t rest_after_ns = 5'000;  // without anything to do a PE says so, and spins on
constexpr std::int64_t shutdown_nap_ns = 500'000;  // other PEs come to their end without saying so

// What work for an idle PE is called in traces and reports; nobody sends it.
const handler idle_work{"orrery",
                        "when_idle",
                        "work",
                        [](pe& self, slot&, delivery& d) {
                          self.fail(d, make_error(errc::unknown_handler, "a message that is never sent"));
                        },
                        [](void*, void*) {},
                        [](void*) {},
                        0,
                        false};

}  // namespace

void pe::run_when_idle(std::unique_ptr<idle_task> t) {
  if (refusing_) refuse("when_idle");
  t->by = active_ != nullptr ? active_->process : nullptr;
  for (const auto& a : annexes_)
    if (a != nullptr && t->by != nullptr && t->counted_as == 0)
      if (const std::uint64_t n = a->begin_work(*t->by); n != 0) {
        t->counted_by = a.get();
        t->counted_as = n;
      }
  when_idle_.push(std::move(t));
}

bool pe::run_idle_task() {
  if (refusing_) {  // as with one-way messages then
    when_idle_.clear();
    return false;
  }
  const std::unique_ptr<idle_task> t = when_idle_.pop();
  as_process(idle_work, [&] {
    try {
      t->run();
    } catch (...) {
      report_failed_post(&idle_work, std::current_exception());
    }
  });
  return true;
}

bool pe::anything_inbound() noexcept {
  if (bell_.announce.load(std::memory_order_relaxed) != announced_) return true;
  for (const auto& in : inbound_)
    if (!in->lost && (in->ring.front() != nullptr || in->ring.corrupt())) return true;
  for (channel* c : busy_channels_)
    if (c->lost || c->ring.has_moved()) {
      wake_waiters(*c);
      return true;
    }
  if (io_active_ != nullptr && io_active_->ready()) return true;
  return stopping() && stage_.load(std::memory_order_relaxed) == shutdown_stage::running;
}

// Says that there is nothing to do, if that is so for a while; or at once, if somebody here waits for quiescence: then true if he waits no more.
bool pe::at_rest(std::int64_t begin, std::int64_t now) {
  if (quiescence_waiters_ == nullptr && now < begin + rest_after_ns) return false;
  rest();
  if (quiescence_waiters_ == nullptr) return false;
  (void)look_for_quiescence(now);
  if (runnable_.empty()) end_rest();
  return !runnable_.empty();
}

// True if something has come.
bool pe::spin(std::int64_t begin, std::int64_t due, bool nothing_due) {
  if (settings_.yield) {
    for (int i = 0; i < yields_before_sleep; ++i) {
      if (anything_inbound()) return true;
      sched_yield();
    }
    return false;
  }
  const std::int64_t until = due >= 0 ? std::min(due, begin + settings_.spin_ns) : begin + settings_.spin_ns;
  for (;;) {
    for (int i = 0; i < 128; ++i) {
      if (anything_inbound()) return true;
      if (i % 8 == 7) transport::cpu_relax();
    }
    const std::int64_t now = transport::now_ns();
    if (now >= until || (nothing_due && at_rest(begin, now))) return false;
  }
}

void pe::sleep(std::int64_t begin, std::int64_t due) {
  publisher_.sleeping(count_, begin);
  const std::uint32_t word = bell_.futex.load(std::memory_order_relaxed);
  bell_.sleeping.store(1, std::memory_order_relaxed);
  for (channel* c : busy_channels_)
    if (!c->lost) c->ring.header()->producer_waits.store(1, std::memory_order_relaxed);
  transport::fence_heavy();  // SYNC: Dekker with notify and release_space
  if (!anything_inbound()) {
    ++count_.sleeps;
    const std::int64_t asleep = trace_ != nullptr ? transport::now_ns() : 0;
    if (io_ != nullptr && io_->sleeps()) {
      io_->sleep(word, due);  // until a request is done, or as below
    } else {
      transport::futex_wait(bell_.futex, word, due, node_.shares_memory());
    }
    if (trace_ != nullptr) [[unlikely]]
      trace_->slept(asleep, transport::now_ns());
  }
  bell_.sleeping.store(0, std::memory_order_relaxed);
  for (channel* c : busy_channels_)
    if (!c->lost) c->ring.header()->producer_waits.store(0, std::memory_order_relaxed);
}

void pe::idle() {
  const std::int64_t begin = transport::now_ns();
  const std::uint64_t ticks = transport::ticks();
  for (const auto& in : inbound_)
    if (!in->lost && in->ring.has_unreleased() && in->ring.release_space()) node_.wake(in->pe);
  std::int64_t due = timers_.empty() ? -1 : timers_.begin()->first;
  // Who waits for space in a ring, or has a record in hand for it, is not idle.
  const bool nothing_due = due < 0 && io_active_ == nullptr && busy_channels_.empty() && !stopping();
  if (stopping()) due = begin + shutdown_nap_ns;

  const bool found =
      resting_ || (nothing_due && at_rest(begin, begin)) ? anything_inbound() : spin(begin, due, nothing_due);
  if (found && !resting_) {
    // What has come to a PE that spins is dealt with at once: to ask for the time would cost a tenth of a round trip.
    const auto spun = static_cast<std::int64_t>(transport::ticks() - ticks);
    if (spun > 0 && begin > clock_origin_.ns && ticks > clock_origin_.ticks) {  // cores may count from different points
      const double ns_per_tick =
          static_cast<double>(begin - clock_origin_.ns) / static_cast<double>(ticks - clock_origin_.ticks);
      count_.idle_ns += static_cast<std::uint64_t>(ns_per_tick * static_cast<double>(spun));
    }
    publisher_.awake(count_, begin);
    return;
  }
  if (!found && runnable_.empty()) {
    if (nothing_due && !stopping()) {
      rest();
      if (const std::int64_t look = look_for_quiescence(transport::now_ns()); look >= 0) due = look;
    }
    if (due < 0 || transport::now_ns() < due) sleep(begin, due);
  }
  if (resting_ && (!runnable_.empty() || stopping())) end_rest();
  const std::int64_t end = transport::now_ns();
  count_.idle_ns += static_cast<std::uint64_t>(end - begin);
  publisher_.awake(count_, end);
}

}  // namespace orrery::scheduler
