// SPDX-License-Identifier: Apache-2.0
// A PE that has nothing to run: the work that waited for that, then it spins, says that it rests,
// sleeps.
#include <orrery/scheduler/io.hpp>
#include <orrery/scheduler/nap.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/scheduler/passing_process.hpp>
#include <orrery/scheduler/pe.hpp>
#include <orrery/scheduler/pe_parts.hpp>
#include <orrery/scheduler/trace.hpp>
#include <orrery/transport/carrier.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <algorithm>
#include <exception>
#include <limits>
#include <utility>

#include <sched.h>

namespace orrery::scheduler {
namespace {

constexpr int yields_before_sleep = 20;      // when PEs share cores
constexpr std::uint32_t few_pes = 256;       // of a node: to yield to all others takes long
// a yield that took so long gave the core to somebody who computes
constexpr std::int64_t turn_ns = 200'000;
constexpr std::int64_t spins_between_machines = 8;
// Most calls are answered before: a probe for each would cost both PEs as much as the call.
constexpr std::int64_t chase_after_ns = 20'000;
constexpr std::int64_t rest_after_ns = 5'000;  // without anything to do a PE says so, and spins on
// A sender of another OS process may not see that this PE sleeps (transport::fence_heavy).
constexpr std::int64_t longest_sleep_beside_others_ns = 100'000'000;

// The name of work for an idle PE in traces and reports; nobody sends it.
const handler idle_work{
    "orrery",
    "when_idle",
    "work",
    [](pe&, slot&, delivery& d) { d.fail(make_error(errc::unknown_handler, "a message that is never sent")); },
    [](void*, void*) {},
    [](void*) {},
    0,
    false};

}  // namespace

void pe::run_when_idle(wire::unique_ptr<idle_task> t) {
  if (refusing_) shutdown_.refuse("when_idle");
  t->by = active_ != nullptr ? active_->process : nullptr;
  layers_.count_work(*t);
  when_idle_.push(std::move(t));
}

bool pe::run_idle_task() {
  if (refusing_) {  // as with one-way messages then
    when_idle_.clear();
    return false;
  }
  const wire::unique_ptr<idle_task> t = when_idle_.pop();
  const passing_process process(*this, idle_work);
  try {
    t->run();
  } catch (...) {
    failures_.report_post(&idle_work, std::current_exception());
  }
  return true;
}

bool pe::anything_inbound() noexcept {
  if (carrier_ != nullptr) [[unlikely]]
    (void)carrier_->drive();
  if (links_.anything_new()) return true;
  if (io_active_ != nullptr && io_active_->ready()) return true;
  return stopping() && shutdown_.stage() == shutdown_stage::running;
}

// Says that there is nothing to do, if that is so for a while; or at once, if somebody here waits
// for quiescence: then true if he waits no more.
bool pe::at_rest(std::int64_t begin, std::int64_t now) {
  const bool hurries = quiescence_.someone_waits() || quiescence_.settles();
  if (!hurries && now < begin + rest_after_ns) return false;
  quiescence_.rest();
  if (!hurries) return false;
  (void)quiescence_.look(now);
  if (runnable_.empty()) quiescence_.end_rest();
  return !runnable_.empty();
}

// True if something has come.
bool pe::spin(std::int64_t begin, std::int64_t due, bool nothing_due) {
  if (settings_.yield) {
    if (stopping() && node_.pe_count() > few_pes) return anything_inbound();
    // A thread that yields again and again beside one that computes waits for a whole turn each
    // time, and the kernel lets it run ever later. A thread that sleeps runs as soon as it is
    // woken.
    std::int64_t before = begin;
    for (int i = 0; i < yields_before_sleep; ++i) {
      if (anything_inbound()) return true;
      sched_yield();
      const std::int64_t now = transport::now_ns();
      if (now - before > turn_ns) return anything_inbound();
      before = now;
    }
    return false;
  }
  // To wake takes longer where another thread looks for what comes from other machines.
  const std::int64_t spin_ns = carrier_ != nullptr ? spins_between_machines * settings_.spin_ns : settings_.spin_ns;
  const bool suspects = deadlocks_.has_suspects();
  std::int64_t until = begin + (suspects ? std::min(spin_ns, chase_after_ns) : spin_ns);
  if (due >= 0) until = std::min(until, due);
  for (;;) {
    for (int i = 0; i < 128; ++i) {
      if (anything_inbound()) return true;
      if (i % 8 == 7) transport::cpu_relax();
    }
    const std::int64_t now = transport::now_ns();
    if (nothing_due && at_rest(begin, now)) return false;
    if (now >= until && (suspects || carrier_ == nullptr || (due >= 0 && now >= due) || !carrier_->needs(id())))
      return false;
  }
}

void pe::sleep(std::int64_t begin, std::int64_t due) {
  if (count_.queued_bytes != 0) flow_.excess().measure_if_due();
  publisher_.sleeping(count_, begin);
  if (node_.shares_memory()) {
    const std::int64_t latest = begin + longest_sleep_beside_others_ns;
    due = due < 0 ? latest : std::min(due, latest);
  }
  const std::uint32_t word = bell_.futex.load(std::memory_order_relaxed);
  bell_.sleeping.store(1, std::memory_order_relaxed);
  links_.ask_for_wakes(true);
  transport::fence_heavy();  // SYNC: Dekker with notify and release_space, and with mpi_world::rest
  if (!anything_inbound()) {
    if (carrier_ != nullptr) [[unlikely]]
      carrier_->pe_sleeps();
    ++count_.sleeps;
    const bool traced = watch_ != nullptr && watch_->trace != nullptr;
    const std::int64_t asleep = traced ? transport::now_ns() : 0;
    if (io_ != nullptr && io_->sleeps()) {
      io_->sleep(word, due);  // until a request is done, or as below
    } else {
      transport::futex_wait(bell_.futex, word, due, node_.shares_memory());
    }
    if (traced) [[unlikely]]
      watch_->trace->slept(asleep, transport::now_ns());
  }
  bell_.sleeping.store(0, std::memory_order_relaxed);
  if (carrier_ != nullptr) [[unlikely]]
    carrier_->pe_woke();
  links_.ask_for_wakes(false);
}

void pe::idle() {
  const std::int64_t begin = transport::now_ns();
  const std::uint64_t ticks = transport::ticks();
  links_.release_space();
  if (carrier_ != nullptr) [[unlikely]]
    carrier_->reclaim_rings(id());
  // A wait whose limit is the end of time has a timer, as that ends it when the world ends. The PE
  // is idle nevertheless.
  constexpr std::int64_t no_deadline = std::numeric_limits<std::int64_t>::max();
  std::int64_t due = timers_.empty() || timers_.begin()->first == no_deadline ? -1 : timers_.begin()->first;
  // A PE that waits for space in a ring, or has a record in hand for it, is not idle.
  const bool nothing_to_do = io_active_ == nullptr && !links_.has_busy() && !stopping();
  // the limit of the main process, which settles, is not counted
  auto next_timer = timers_.begin();
  if (quiescence_.settles() && next_timer != timers_.end() && next_timer->first == quiescence_.settle_deadline())
    ++next_timer;
  const bool waits_for_time = next_timer != timers_.end() && next_timer->first != no_deadline;
  const bool suspects = deadlocks_.has_suspects();
  const bool nothing_due = nothing_to_do && !waits_for_time && !suspects;
  if (stopping()) due = begin + shutdown_nap_ns(node_.pe_count());
  if (flow_.excess().may_hold()) [[unlikely]] {
    flow_.excess().relieve(begin);
    due = std::min(due < 0 ? std::numeric_limits<std::int64_t>::max() : due, begin + backlog::relieve_after_ns);
  }

  bool found = quiescence_.resting() || (nothing_due && at_rest(begin, begin)) ? anything_inbound()
                                                                               : spin(begin, due, nothing_due);
  if (!found && suspects) {
    (void)deadlocks_.chase_suspects();
    found = true;  // looks again before it sleeps
  }
  if (found && !quiescence_.resting()) {
    // A PE that spins is in a hurry: to ask for the time costs a tenth of a round trip.
    const auto spun = static_cast<std::int64_t>(transport::ticks() - ticks);
    // cores may count from different points
    if (spun > 0 && begin > clock_origin_.ns && ticks > clock_origin_.ticks) {
      const double scale =
          static_cast<double>(begin - clock_origin_.ns) / static_cast<double>(ticks - clock_origin_.ticks);
      count_.idle_ns += static_cast<std::uint64_t>(scale * static_cast<double>(spun));
    }
    publisher_.awake(count_, begin);
    return;
  }
  if (!found && runnable_.empty()) {
    if (nothing_due && !stopping()) {
      quiescence_.rest();
      if (const std::int64_t look = quiescence_.look(transport::now_ns()); look >= 0) due = look;
    }
    const bool rests_for_time = nothing_to_do && waits_for_time;
    if (rests_for_time) {
      quiescence_.rest(true);
      if (quiescence_.settles()) due = std::min(due, quiescence_.look(transport::now_ns()));
    }
    if (runnable_.empty() && (due < 0 || transport::now_ns() < due)) sleep(begin, due);
    if (rests_for_time) quiescence_.end_rest();
  }
  if (quiescence_.resting() && (!runnable_.empty() || stopping())) quiescence_.end_rest();
  const std::int64_t end = transport::now_ns();
  count_.idle_ns += static_cast<std::uint64_t>(end - begin);
  publisher_.awake(count_, end);
}

}  // namespace orrery::scheduler
