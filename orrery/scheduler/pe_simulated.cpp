// SPDX-License-Identifier: Apache-2.0
// A PE in a simulation: it gives the thread back where another one would sleep.
#include <orrery/scheduler/io.hpp>
#include <orrery/scheduler/pe.hpp>
#include <orrery/scheduler/pe_parts.hpp>
#include <orrery/scheduler/simulator.hpp>
#include <orrery/scheduler/urgent_queue.hpp>

namespace orrery::scheduler {

namespace {
constexpr int entries_per_poll = 64;  // of the run queue

// The PE pays for its messages as they are executed; it does not for waits that end and functions
// that begin.
bool is_of_messages(run_queue::entry e, const urgent_queue* urgent) noexcept {
  if (e.is_slot()) return !e.as_slot()->is_function;
  return !e.is_fiber() && urgent != nullptr && urgent->owns(*e.as_sink());
}
}  // namespace

void pe::carry(outbound& c, std::uint32_t bytes) noexcept { sim_->by->sent(*this, c, bytes); }

bool pe::poll_simulated() {
  ticks_ = 0;  // who parks goes to the loop, which looks who is next
  flow_.listens(count_.sent_bytes);
  if (links_.has_news()) links_.take_news();
  bool any = links_.has_busy() && links_.serve_busy();
  if (io_active_ != nullptr) any |= io_active_->poll();
  any |= fire_timers();
  if (deadlocks_.has_suspects() && !any && runnable_.empty()) any |= deadlocks_.chase_suspects();
  if (runnable_.size() > count_.queue_high) count_.queue_high = runnable_.size();
  return any || !runnable_.empty();
}

// Works until there is nothing to do or another PE is earlier. False: this fiber was laid aside,
// and who is running now is to be asked again.
bool pe::turn() {
  simulator& by = *sim_->by;
  for (;;) {
    by.charge_executed(*this);
    const bool busy = poll_simulated();
    // Records that came in one frame are taken one by one.
    const bool more = sim_->next_arrival() <= sim_->clock;
    if (stopping() && shutdown_.wind_down(busy || more || waits_for_files() || !when_idle_.empty())) {
      sim_->over = true;
      return true;
    }
    if (runnable_.empty()) {
      if (when_idle_.empty() || sim_->clock > by.horizon(*sim_)) return true;
      if (run_idle_task()) by.charge_messages(*this, 1);
      continue;
    }
    for (int n = 0; n < entries_per_poll && !runnable_.empty(); ++n) {
      if (sim_->clock > by.horizon(*sim_)) return true;
      const run_queue::entry e = runnable_.pop();
      if (!is_of_messages(e, urgent_.get())) by.charge_messages(*this, 1);
      if (e.is_fiber()) {
        fiber& f = *e.as_fiber();
        f.queued = 0;
        resume(f);
        return false;
      }
      if (!e.is_slot()) {
        run_sink(*e.as_sink());
      } else if (slot& s = *e.as_slot(); s.is_function) {
        run_slot(s);
        return false;
      } else {
        run_slot(s);
      }
      by.charge_executed(*this);
    }
  }
}

}  // namespace orrery::scheduler
