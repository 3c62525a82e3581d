// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/pe.hpp>

#include <orrery/scheduler/causality.hpp>
#include <orrery/scheduler/fiber_pool.hpp>
#include <orrery/scheduler/internal/fiber_switch.hpp>
#include <orrery/scheduler/io.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/scheduler/overflow.hpp>
#include <orrery/scheduler/passing_process.hpp>
#include <orrery/scheduler/pe_parts.hpp>
#include <orrery/scheduler/terminate.hpp>
#include <orrery/scheduler/trace.hpp>
#include <orrery/scheduler/unbegun.hpp>
#include <orrery/scheduler/urgent_queue.hpp>
#include <orrery/transport/world.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <algorithm>
#include <bit>
#include <exception>
#include <utility>

namespace orrery::scheduler {

[[gnu::tls_model("initial-exec")]] constinit thread_local pe* current_pe = nullptr;

namespace {

constexpr int messages_per_turn = 32;      // of one process, before the next one has its turn
constexpr std::uint32_t spare_loops = 64;  // idle loop fibers that are kept

// The members of a PE that a switch of its fibers touches.
struct fiber_place {
  fiber*& current;
  activation*& active;
  pe_watch* const& watch;
  fiber_pool& fibers;

  // Inline in what parks and in the loop: internal/fiber_switch.hpp says why.
  [[gnu::always_inline]] inline void switch_to(fiber& to) const {
    if (watch != nullptr && watch->trace != nullptr) [[unlikely]]
      watch->trace->park();
    fiber& from = *current;
    from.active = active;
    active = nullptr;
    current = &to;
    switch_here(from, to);
    active = from.active;
    if (watch != nullptr && watch->trace != nullptr) [[unlikely]]
      watch->trace->resume(active);
    fibers.finish();
  }
  // A loop fiber goes on with another one.
  [[gnu::always_inline]] inline void give_way(fiber& f) const {
    fiber& self = *current;
    if (fibers.idle_count >= spare_loops) [[unlikely]] {
      // Enough loops lie idle; this one holds nothing, so its stack goes back.
      fibers.finished = &self;
      current = &f;
      leave_fiber(self, f);
    }
    fibers.lay_aside(self);
    switch_to(f);
  }
  // The fiber of an entry, that of a process that waited or of a function, which is to run now.
  [[nodiscard]] fiber& fiber_of(run_queue::entry e) const noexcept {
    if (e.is_fiber()) {
      fiber& f = *e.as_fiber();
      f.queued = 0;
      return f;
    }
    e.as_slot()->state = process_state::running;
    return scheduler::fiber_of(*e.as_slot(), fibers.function_stacks);
  }
};

// The address space is shared by all PEs of a simulation.
std::uint32_t simulated_slots(std::uint32_t pes) noexcept {
  // more, and each PE would have pages of the page table to itself
  constexpr std::size_t all = std::size_t{1} << 36;
  return static_cast<std::uint32_t>(
      std::min(std::size_t{process_table::most_slots}, std::bit_floor(all / std::max(pes, 1U))));
}

}  // namespace

pe::pe(node& owner, std::uint32_t id, transport::doorbell& bell, const pe_settings& settings)
    : run_state(id, settings.fibers != nullptr ? simulated_slots(owner.world_pes()) : process_table::most_slots,
                settings.fibers == nullptr && !settings.small_pages),  // else each PE has 2 MiB
      flow_(*this, settings),
      publisher_(owner.world() != nullptr ? owner.world()->counters(id).data() : nullptr),
      parts_(wire::make_unique<pe_parts>(*this)),
      when_idle_(parts_->when_idle),
      links_(*this, bell, owner.world_pes()),
      timers_(parts_->timers),
      deadlocks_(parts_->deadlocks),
      quiescence_(parts_->quiescence),
      node_(owner),
      bell_(bell),
      settings_(settings),
      own_fibers_(
          settings.fibers != nullptr
              ? nullptr
              : wire::make_unique<fiber_pool>(settings.method_stack, settings.function_stack, &pe::loop_entry, this)) {
  fibers_ = settings.fibers != nullptr ? settings.fibers : own_fibers_.get();
  if (settings.follow_order) {
    own_order_ = wire::make_unique<causality>(*this);
    seen_by_.order = own_order_.get();
    watch_ = &seen_by_;
    pool_.watch(*own_order_);
  }
  // The library between machines runs on the stack of who drives it; on smaller ones its own thread
  // has to.
  constexpr std::size_t least_stack = 128 << 10;
  if (owner.world() != nullptr && settings.method_stack >= least_stack) carrier_ = owner.world()->carrier();
}

pe::~pe() = default;

// --- the loop ------------------------------------------------------------------------------------

void pe::run() {
  const overflow_report report;
  const terminate_report end_report;
  current_pe = this;
  adopt_thread(root_);
  current_ = &root_;
  links_.know_losses(node_.gone_nodes());
  switch_to(fibers_->take_loop());
  shutdown_.finish();
  fibers_->forget_idle();
  current_pe = nullptr;
}

void pe::stop() noexcept {
  shutdown_.request();
  transport::fence_heavy();
  node_.wake(id());
}

// True if it is long ago that this was asked last: methods may take long, and then rings, files and
// timers do not wait for all that the run queue holds. (To ask the clock for each method would cost
// a third of a hop.)
bool pe::took_long() noexcept {
  constexpr std::uint64_t long_ago = 50'000;  // some 20 us
  const std::uint64_t now = transport::ticks();
  return now - std::exchange(asked_time_, now) > long_ago && sim_ == nullptr;
}

void pe::loop_entry(fiber&, void* self) { static_cast<pe*>(self)->loop(); }

void pe::loop() {
  fibers_->finish();
  const fiber_place here{current_, active_, watch_, *fibers_};
  for (;;) {
    while (!runnable_.empty()) {
      if (--ticks_ <= 0 || ((ticks_ & 15) == 0 && took_long())) {
        poll();
        if (stopping() && shutdown_.wind_down(true)) [[unlikely]]
          leave_loop();
        if (runnable_.empty()) break;
      }
      const run_queue::entry e = runnable_.pop();
      if (runnable_.size() > fetched_ahead) fetch_ahead();
      if (when_idle_.wants_memory()) [[unlikely]]
        when_idle_.fetch();
      if (e.is_slot() && !e.as_slot()->is_function) {
        if (refusing_) [[unlikely]] {
          shutdown_.refuse_mailbox(*e.as_slot());
        } else {
          run_messages<false>(*e.as_slot());
        }
      } else if (e.is_slot() || e.is_fiber()) {
        here.give_way(here.fiber_of(e));
      } else {
        run_sink(*e.as_sink());
      }
    }
    if (poll()) {  // each time, where something is always due; later stages cut that short
      if (stopping() && shutdown_.stage() <= shutdown_stage::finishing) [[unlikely]]
        (void)shutdown_.wind_down(true);
      continue;
    }
    const bool worked = !when_idle_.empty() && run_idle_task();
    if (stopping()) [[unlikely]] {
      if (shutdown_.stage() == shutdown_stage::running) {
        (void)shutdown_.wind_down(true);
        continue;  // what was sent before the program began to end is there: it is still executed
      }
      const bool ended = shutdown_.wind_down(worked || waits_for_files());
      if (!runnable_.empty()) continue;
      if (ended) leave_loop();
    }
    if (!worked) idle();
  }
}

namespace {
// The name of a continuation in traces and reports; nobody sends it.
const handler continuation{
    "future",
    "then",
    "continuation",
    [](pe&, slot&, delivery& d) { d.fail(make_error(errc::unknown_handler, "a message that is never sent")); },
    [](void*, void*) {},
    [](void*) {},
    0,
    false};
}  // namespace

void pe::run_sink(sink& s) {
  if (urgent_ != nullptr && urgent_->owns(s)) [[unlikely]] {
    if (urgent_->is_next(s)) run_urgent();
    return;
  }
  const passing_process process(*this, continuation);
  order().take_result(s);
  try {
    s.on_done(*this, s);  // s may end here
  } catch (const stopped&) {  // it waited when the program ended
  } catch (...) {
    failures_.report_post(&continuation, std::current_exception());
  }
}

void pe::leave_loop() noexcept {
  fibers_->finished = current_;
  current_ = &root_;
  leave_fiber(*fibers_->finished, root_);
}

void pe::run_slot(slot& s) {
  if (s.is_function) {
    s.state = process_state::running;
    resume(fiber_of(s, fibers_->function_stacks));
    return;
  }
  if (refusing_) [[unlikely]] {
    shutdown_.refuse_mailbox(s);
    return;
  }
  run_messages<false>(s);
}

// Runs one message. True if the process is alive, not active any more and not yet settled.
[[gnu::always_inline]] inline bool pe::run_one(slot& s, delivery& d) {
  activation a{&s, d.method, active_, &d};
  s.active = &a;
  ++s.depth;
  active_ = &a;
  ++count_.executed;
  if (prefetcher_.active()) [[unlikely]]
    prefetcher_.runs(processes_.index_of(s), processes_.begin_of_table());
  if (watch_ != nullptr) [[unlikely]]
    watch_begin(a);
  d.method->run(*this, s, d);
  if (watch_ != nullptr) [[unlikely]]
    watch_end(a);
  active_ = a.below;
  s.active = nullptr;
  --s.depth;
  if (s.dying || !s.has_object) [[unlikely]] {
    if (s.depth != 0) {  // it ends with its last method, and takes nothing more until then
      if (s.dying) conditions_.end(s);
      return false;
    }
    if (s.has_object) {
      destroy(s);
    } else {
      free_slot(s);
    }
    return false;
  }
  if (s.depth != 0) [[unlikely]]
    return s.state == process_state::running && !conditions_.grant(s);
  return s.state == process_state::running;
}

// The first process in the urgent queue runs its urgent messages; others have their turn later.
void pe::run_urgent() {
  slot& s = urgent_->pop(runnable_);
  if (refusing_ || s.is_function) {
    run_slot(s);
  } else {
    run_messages<true>(s);
  }
}

template <bool Urgent>
void pe::run_messages(slot& s) {
  s.state = process_state::running;
  for (int n = 1;; ++n) {
    delivery d;
    d.load(*this, *s.pop());
    if (s.has_extra) [[unlikely]]
      flow_.made_room_if_low(s);
    if (!run_one(s, d)) return;
    const bool late = (n & 15) == 0 && took_long();
    if (!s.has_messages() || n == messages_per_turn || late || (Urgent && !urgent_queue::begins(s))) {
      if (late) poll_within(1);
      settle(s);
      return;
    }
  }
}

void pe::execute(slot& s, delivery& d) {
  if (refusing_) [[unlikely]] {
    if (!s.has_object) free_slot(s);
    d.fail(shutdown_.refusal(d.method));
    return;
  }
  s.state = process_state::running;
  if (run_one(s, d)) settle(s);
}

// --- fibers --------------------------------------------------------------------------------------

void pe::switch_to(fiber& to) { fiber_place{current_, active_, watch_, *fibers_}.switch_to(to); }

void pe::resume(fiber& f) { fiber_place{current_, active_, watch_, *fibers_}.give_way(f); }

void pe::park_reentrant() noexcept {
  for (activation* a = active_; a != nullptr; a = a->below) {
    slot& s = *a->process;
    if (s.cls() != nullptr && s.cls()->reentrant && s.state == process_state::running && s.has_object && !s.dying &&
        s.depth < slot::most_methods)
      settle(s);
  }
}

void pe::park() {
  ++count_.parks;
  for (activation* a = active_; a != nullptr; a = a->below) a->on = current_;
  if (node_.has_reentrant()) [[unlikely]]
    park_reentrant();
  const fiber_place here{current_, active_, watch_, *fibers_};
  fiber* next = nullptr;
  // At a number that poll_within(8) of requests on files does not bring back again and again: many
  // of them are to share a system call.
  if ((ticks_ & 15) == 1 && took_long()) poll_within(1);
  // Hand over without a detour through a loop fiber, when that is all the loop would do.
  if (ticks_ > 1 && !runnable_.empty()) {
    const run_queue::entry e = runnable_.front();
    if (e.is_fiber() || (e.is_slot() && e.as_slot()->is_function)) {
      next = &here.fiber_of(e);
      --ticks_;
      (void)runnable_.pop();
      if (next == current_) return;
    }
  }
  const std::uint32_t method = current_->is_loop;
  parked_methods_ += method;
  here.switch_to(next != nullptr ? *next : fibers_->take_loop());
  parked_methods_ -= method;
}

void pe::yield() {
  if (refusing_) shutdown_.refuse("yield");
  if (took_long()) poll_within(1);
  ready(*current_);
  park();
}

bool pe::park_until(std::int64_t deadline_ns) {
  if (refusing_) shutdown_.refuse("a wait with a time limit");
  timer t{current_};
  const auto it = timers_.emplace(deadline_ns, &t);
  park();
  if (!t.fired) timers_.erase(it);
  return t.fired;
}

bool pe::fire_timers() {
  if (timers_.empty()) return false;
  const std::int64_t now = transport::now_ns();
  bool any = false;
  while (!timers_.empty() && timers_.begin()->first <= now) {
    timer* t = timers_.begin()->second;
    timers_.erase(timers_.begin());
    fire(*t);
    any = true;
  }
  return any;
}

void pe::fire_all_timers() {
  while (!timers_.empty()) {
    timer* t = timers_.begin()->second;
    timers_.erase(timers_.begin());
    fire(*t);
  }
}

void pe::fire(timer& t) {
  t.fired = true;
  if (t.process == nullptr) {
    ready(*t.waiter);
  } else if (t.process->state == process_state::receiving) {
    make_runnable(*t.process);
  }
}

void pe::wait(sink& s) {
  if (s.state == sink::status::waiting) [[likely]]
    return wait_for(s);
  order().take_result(s);
}

void pe::wait_for(sink& s) {
  slot* nameless = nullptr;
  for (activation* a = active_; a != nullptr; a = a->below) {
    if ((a->process->has_messages() || s.on_done != nullptr) && !a->process->suspected) deadlocks_.suspect(*a->process);
    if (a->serving != nullptr && !a->process->has_object) nameless = a->process;
  }
  if (nameless != nullptr) deadlocks_.begin_nameless_wait(*nameless);
  current_->waiting_on = &s;
  while (s.state == sink::status::waiting) {
    s.waiter = current_;
    park();
  }
  current_->waiting_on = nullptr;
  if (nameless != nullptr) deadlocks_.end_nameless_wait(*nameless);
  order().take_result(s);
}

bool pe::wait_until(sink& s, std::int64_t deadline_ns) {
  while (s.state == sink::status::waiting) {
    // before there is a waiter, who will not be there
    if (refusing_) shutdown_.refuse("a wait with a time limit");
    s.waiter = current_;
    if (park_until(deadline_ns) && s.state == sink::status::waiting) {
      s.waiter = nullptr;
      if (refusing_) shutdown_.refuse("a wait with a time limit");
      return false;
    }
  }
  order().take_result(s);
  return true;
}

}  // namespace orrery::scheduler
