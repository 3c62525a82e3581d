// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/pe.hpp>

#include <orrery/scheduler/io.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/scheduler/overflow.hpp>
#include <orrery/scheduler/prefetch.hpp>
#include <orrery/scheduler/trace.hpp>
#include <orrery/transport/world.hpp>
#include <orrery/wire/exception.hpp>
#include <orrery/wire/serialize.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>

#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>

namespace orrery::scheduler {

constinit thread_local pe* current_pe = nullptr;

namespace {

constexpr int messages_per_turn = 32;            // of one process, before the next one has its turn
constexpr std::size_t fetched_ahead = 6;         // runnable processes
constexpr std::uint32_t spare_loops = 64;        // idle loop fibers that are kept
constexpr std::size_t slot_reservation = std::size_t{1} << 26;
constexpr std::size_t huge_table = std::size_t{8} << 20;  // bytes of the table of slots that are to lie in huge pages

// The address space is shared by all PEs of a simulation.
std::size_t simulated_slots(std::uint32_t pes) noexcept {
  constexpr std::size_t all = std::size_t{1} << 36;  // more, and each PE would have pages of the page table to itself
  return std::min(slot_reservation, std::bit_floor(all / std::max(pes, 1U)));
}

std::string name_of(const handler* h) {
  return h == nullptr ? std::string{"?"} : fmt::format("{}::{}", h->class_name, h->method);
}

}  // namespace

pe::pe(node& owner, std::uint32_t id, transport::doorbell& bell, const pe_settings& settings)
    : id_(id),
      publisher_(owner.world() != nullptr ? owner.world()->counters(id).data() : nullptr),
      channels_(owner.world_pes()),
      node_(owner),
      bell_(bell),
      settings_(settings),
      own_fibers_(
          settings.fibers != nullptr
              ? nullptr
              : std::make_unique<fiber_pool>(settings.method_stack, settings.function_stack, &pe::loop_entry, this)) {
  fibers_ = settings.fibers != nullptr ? settings.fibers : own_fibers_.get();
  // Reserved, not backed: a slot never moves, so that a pointer to it stays good while its method is parked.
  const bool simulated = settings.fibers != nullptr;
  for (std::size_t n = simulated ? simulated_slots(owner.world_pes()) : slot_reservation; n >= 1024; n /= 4) {
    void* p =
        mmap(nullptr, n * sizeof(slot), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) continue;
    slots_ = static_cast<slot*>(p);
    slot_capacity_ = n;
    break;
  }
  if (slots_ == nullptr) throw std::bad_alloc{};
  // The first slots, which are all that most programs have, share few entries of the TLB. More of that would make the first touch dear on virtual
  // machines: huge pages are those that their host has taken back.
  if (simulated) {
    madvise(slots_, slot_capacity_ * sizeof(slot), MADV_NOHUGEPAGE);  // else each PE would have 2 MiB
  } else {
    madvise(slots_, std::min(slot_capacity_ * sizeof(slot), huge_table), MADV_HUGEPAGE);
  }
  pending_.emplace_back();  // entry 0 means "none"
}

pe::~pe() {
  if (slots_ == nullptr) return;
  for (std::uint32_t i = 0; i < slot_count_; ++i) (void)slots_[i].open_room();  // who maps this memory next may use it
  munmap(slots_, slot_capacity_ * sizeof(slot));
}

// --- the loop ---------------------------------------------------------------------------------------------------

void pe::run() {
  const overflow_report report;
  current_pe = this;
  adopt_thread(root_);
  current_ = &root_;
  gone_nodes_ = node_.gone_nodes();
  switch_to(fibers_->take_loop());
  end();
  fibers_->forget_idle();
  current_pe = nullptr;
}

// After the loop, on the thread's own stack.
void pe::end() noexcept {
  drop_leftovers();
  report_more_unsent();
  when_idle_.clear();  // layers count what waits there
  for (auto& annex : annexes_) annex.reset();
  io_.reset();  // on the thread that made it
  publisher_.publish(count_, transport::now_ns());
}

void pe::stop() noexcept {
  stop_.store(true, std::memory_order_relaxed);
  transport::fence_heavy();
  node_.wake(id_);
}

void pe::loop_entry(fiber&, void* self) { static_cast<pe*>(self)->loop(); }

void pe::loop() {
  finish_fiber();
  for (;;) {
    while (!runnable_.empty()) {
      if (--ticks_ <= 0) {
        poll();
        if (stopping() && wind_down(true)) [[unlikely]]
          leave_loop();
        if (runnable_.empty()) break;
      }
      const run_queue::entry e = runnable_.pop();
      if (runnable_.size() > fetched_ahead) fetch_ahead();
      if (when_idle_.wants_memory()) [[unlikely]]
        when_idle_.fetch();
      if (e.is_fiber()) {
        fiber& f = *e.as_fiber();
        f.queued = 0;
        resume(f);
      } else if (e.is_slot()) {
        run_slot(*e.as_slot());
      } else {
        run_sink(*e.as_sink());
      }
    }
    if (poll()) continue;
    const bool worked = !when_idle_.empty() && run_idle_task();
    if (stopping()) [[unlikely]] {
      if (wind_down(worked || waits_for_files())) leave_loop();
      if (!runnable_.empty()) continue;
    }
    if (!worked) idle();
  }
}

namespace {
// What a continuation is called in traces and reports; nobody sends it.
const handler continuation{"future",
                           "then",
                           "continuation",
                           [](pe& self, slot&, delivery& d) {
                             self.fail(d, make_error(errc::unknown_handler, "a message that is never sent"));
                           },
                           [](void*, void*) {},
                           [](void*) {},
                           0,
                           false};
}  // namespace

// Of many processes that are runnable the next ones are in no cache: since they were put into the queue all the others have run. So their lines are asked
// for while others run, one step of what leads to what at a time: the slot, the object and the last message, the first message, the rest of both.
void pe::fetch_ahead() const noexcept {
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

void pe::run_sink(sink& s) {
  as_process(continuation, [&] { s.on_done(*this, s); });  // s may end here
}

void pe::leave_loop() noexcept {
  fibers_->finished = current_;
  current_ = &root_;
  leave_fiber(*fibers_->finished, root_);
}

void pe::run_slot(slot& s) {
  if (s.is_function) {
    s.state = process_state::running;
    resume(*static_cast<fiber*>(s.object()));
    return;
  }
  if (refusing_) [[unlikely]] {
    refuse_mailbox(s);
    return;
  }
  run_messages(s);
}

// Runs one message. True if the process is alive, not active any more and not yet settled.
[[gnu::always_inline]] inline bool pe::run_one(slot& s, delivery& d) {
  activation a{&s, d.method, active_, &d};
  s.active = &a;
  ++s.depth;
  active_ = &a;
  ++count_.executed;
  if (prefetcher_.active()) [[unlikely]]
    prefetcher_.runs(static_cast<std::uint32_t>(&s - slots_), slots_);
  if (trace_ != nullptr) [[unlikely]]
    trace_begin(a);
  d.method->run(*this, s, d);
  if (trace_ != nullptr) [[unlikely]]
    trace_end(a);
  active_ = a.below;
  s.active = nullptr;
  --s.depth;
  if (s.dying || !s.has_object) [[unlikely]] {
    if (s.depth != 0) return false;  // reentrant: it ends with its last method, and takes nothing more until then
    if (s.has_object) {
      destroy(s);
    } else {
      free_slot(s);
    }
    return false;
  }
  return s.state == process_state::running;
}

void pe::run_messages(slot& s) {
  s.state = process_state::running;
  for (int n = 1;; ++n) {
    delivery d;
    load(d, *s.pop());
    if (s.has_extra) [[unlikely]]
      made_room_if_low(s);
    if (!run_one(s, d)) return;
    if (!s.has_messages() || n == messages_per_turn) {
      settle(s);
      return;
    }
  }
}

void pe::execute(slot& s, delivery& d) {
  if (refusing_) [[unlikely]] {
    if (!s.has_object) free_slot(s);
    fail(d, refusal(d.method));
    return;
  }
  s.state = process_state::running;
  if (run_one(s, d)) settle(s);
}

// --- fibers ------------------------------------------------------------------------------------------------------

void pe::trace_begin(const activation& a) noexcept { trace_->begin(a, address_of(*a.process)); }
void pe::trace_end(const activation& a) noexcept { trace_->end(a); }

void pe::switch_to(fiber& to) {
  if (trace_ != nullptr) [[unlikely]]
    trace_->park();
  fiber& from = *current_;
  from.active = active_;
  active_ = nullptr;
  current_ = &to;
  switch_fiber(from, to);
  active_ = from.active;
  if (trace_ != nullptr) [[unlikely]]
    trace_->resume(active_);
  finish_fiber();
}

void pe::resume(fiber& f) {
  fiber& self = *current_;
  if (fibers_->idle_count >= spare_loops) [[unlikely]] {
    // Enough loops lie idle; this one holds nothing, so its stack goes back.
    fibers_->finished = &self;
    current_ = &f;
    leave_fiber(self, f);
  }
  fibers_->lay_aside(self);
  switch_to(f);
}

void pe::require_process() const {
  if (active_ == nullptr) throw usage_error(errc::not_in_process);
}

void pe::park_reentrant() noexcept {
  for (activation* a = active_; a != nullptr; a = a->below) {
    slot& s = *a->process;
    if (s.cls() != nullptr && s.cls()->reentrant && s.state == process_state::running && s.has_object && !s.dying)
      settle(s);
  }
}

void pe::park() {
  ++count_.parks;
  for (activation* a = active_; a != nullptr; a = a->below) a->on = current_;
  if (node_.has_reentrant()) [[unlikely]]
    park_reentrant();
  fiber* next = nullptr;
  // Hand over without a detour through a loop fiber, when that is all the loop would do.
  if (ticks_ > 1 && !runnable_.empty()) {
    const run_queue::entry e = runnable_.front();
    if (e.is_fiber()) {
      next = e.as_fiber();
      next->queued = 0;
    } else if (e.is_slot() && e.as_slot()->is_function) {
      e.as_slot()->state = process_state::running;
      next = static_cast<fiber*>(e.as_slot()->object());
    }
    if (next != nullptr) {
      --ticks_;
      (void)runnable_.pop();
      if (next == current_) return;
    }
  }
  const std::uint32_t method = current_->is_loop;
  parked_methods_ += method;
  switch_to(next != nullptr ? *next : fibers_->take_loop());
  parked_methods_ -= method;
}

void pe::yield() {
  if (refusing_) refuse("yield");
  ready(*current_);
  park();
}

bool pe::park_until(std::int64_t deadline_ns) {
  if (refusing_) refuse("a wait with a time limit");
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

void pe::fire(timer& t) {
  t.fired = true;
  if (t.process == nullptr) {
    ready(*t.waiter);
  } else if (t.process->state == process_state::receiving) {
    make_runnable(*t.process);
  }
}

void pe::wait(sink& s) {
  if (s.state != sink::status::waiting) return;
  slot* nameless = nullptr;
  for (activation* a = active_; a != nullptr; a = a->below) {
    if ((a->process->has_messages() || s.on_done != nullptr) && !a->process->suspected) suspect(*a->process);
    if (a->serving != nullptr && !a->process->has_object) nameless = a->process;
  }
  if (nameless != nullptr) nameless_waits_.push_back(nameless);
  current_->waiting_on = &s;
  while (s.state == sink::status::waiting) {
    s.waiter = current_;
    park();
  }
  current_->waiting_on = nullptr;
  if (nameless != nullptr) *std::ranges::find(nameless_waits_, nameless) = nameless_waits_.back();
  if (nameless != nullptr) nameless_waits_.pop_back();
}

bool pe::wait_until(sink& s, std::int64_t deadline_ns) {
  while (s.state == sink::status::waiting) {
    if (refusing_) refuse("a wait with a time limit");  // before there is a waiter, who will not be there
    s.waiter = current_;
    if (park_until(deadline_ns) && s.state == sink::status::waiting) {
      s.waiter = nullptr;
      if (refusing_) refuse("a wait with a time limit");
      return false;
    }
  }
  return true;
}

void pe::complete(sink& s) {
  if (s.waiter != nullptr) {
    fiber* f = s.waiter;
    s.waiter = nullptr;
    ready(*f);
  }
  if (s.on_done != nullptr) s.on_done(*this, s);
}

// --- function processes ----------------------------------------------------------------------------------------

fiber* pe::make_function_fiber(void (*entry)(fiber&, void*), void* argument) {
  fiber* f = make_fiber(fibers_->function_stacks.allocate(), entry, argument);
  f->is_loop = 0;
  ++functions_;
  return f;
}

void pe::end_function(slot& s) noexcept {
  fiber& self = *current_;
  if (trace_ != nullptr && active_ != nullptr) [[unlikely]]
    trace_end(*active_);
  active_ = nullptr;
  s.active = nullptr;
  free_slot(s);
  fibers_->finished = &self;
  --functions_;
  fiber& next = fibers_->take_loop();
  current_ = &next;
  leave_fiber(self, next);
}

bool pe::await_message(slot& s, std::int64_t deadline_ns) {
  fiber& self = *current_;
  if (refusing_ || self.cancelled) refuse("receive");
  bool timed_out = false;
  s.state = process_state::receiving;
  if (deadline_ns < 0) {
    park();
  } else {
    timer t{&self, &s};
    const auto it = timers_.emplace(deadline_ns, &t);
    park();
    if (!t.fired) timers_.erase(it);
    timed_out = t.fired;
  }
  if (self.cancelled) std::rethrow_exception(ending("receive"));
  return !timed_out;
}

// --- processes ---------------------------------------------------------------------------------------------------

slot& pe::allocate_slot_slow() {
  if (slot_count_ == slot_capacity_) throw std::bad_alloc{};
  if (slot_count_ == jump_prefetcher::worthwhile) prefetcher_.activate(slot_capacity_);
  slot& s = slots_[slot_count_++];
  s.generation = 1;
  s.state = process_state::running;
  ++count_.processes;
  ++count_.spawned;
  return s;
}

void pe::free_slot(slot& s) noexcept {
  const std::uint32_t index = static_cast<std::uint32_t>(&s - slots_);
  const address gone{id_, index, s.generation};
  if (s.has_extra) drop_extra(s);
  s.state = process_state::free;
  if (++s.generation == 0) s.generation = 1;
  s.close_room();
  s.has_object = s.apart = s.is_function = false;
  s.class_number = 0;
  s.dying = false;
  s.suspected = false;  // else the next process here would never be one
  s.depth = 0;
  s.active = nullptr;
  --count_.processes;
  for (message* m = s.take_all(); m != nullptr;) {
    message* next = m->next;
    delivery d;
    load(d, *m);
    fail(d, std::make_exception_ptr(process_gone(fmt::format(
                "{} at {}, which was destroyed before the message was executed", name_of(d.method), to_string(gone)))));
    m = next;
  }
  s.link = free_slot_;
  free_slot_ = index;
  if (s.named) [[unlikely]] {
    s.named = false;
    node_.layer()->after_end(*this, gone);
  }
}

void pe::destroy(slot& s) {
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

void pe::end_object(slot& s) noexcept {
  void* object = s.object();
  s.has_object = false;
  s.dying = true;
  if (s.named) [[unlikely]]
    node_.layer()->before_end(*this, s);
  s.cls()->destroy(object);
}

// --- mailboxes ---------------------------------------------------------------------------------------------------

void pe::wait_for_room(slot& s) {
  const std::uint32_t generation = s.generation;
  for (activation* a = active_; a != nullptr; a = a->below)
    if (a->process == &s)
      throw mailbox_full(
          verbatim,
          fmt::format(
              "the process {} fills its own mailbox ({} bytes) while it runs, and only it could empty it; return from "
              "the method now and then, or raise --orrery-mailbox",
              describe(s), settings_.mailbox_bytes));
  require_process();
  bool waited = false;
  while (s.generation == generation && over_limit(s)) {
    if (refusing_) refuse("a message to a full mailbox");
    slot_extra& x = make_extra(s);
    current_->next = nullptr;
    if (x.senders == nullptr) {
      x.senders = x.last_sender = current_;
    } else if (waited) {  // its place is the first one
      current_->next = x.senders;
      x.senders = current_;
    } else {
      x.last_sender->next = current_;
      x.last_sender = current_;
    }
    park_for_room(address_of(s), 0);
    waited = true;
  }
  if (waited && s.generation == generation && s.has_extra) wake_sender(s);
}

slot_extra* pe::extra_of(const slot& s) noexcept {
  return s.has_extra ? &extras_.find(static_cast<std::uint32_t>(&s - slots_))->second : nullptr;
}
slot_extra& pe::make_extra(slot& s) {
  slot_extra& x = extras_[static_cast<std::uint32_t>(&s - slots_)];
  s.has_extra = true;
  return x;
}
// Whoever waits for room in the mailbox finds that the process has ended.
void pe::drop_extra(slot& s) noexcept {
  wake_all(std::exchange(extra_of(s)->senders, nullptr));
  made_room(s);
  extras_.erase(static_cast<std::uint32_t>(&s - slots_));
  s.has_extra = false;
}

void pe::wake_sender(slot& s) {
  slot_extra& x = *extra_of(s);
  fiber* f = x.senders;
  if (f == nullptr) return;
  x.senders = f->next;
  f->next = nullptr;
  f->room->over = true;
  ready(*f);
}

void pe::made_room(slot& s) {
  if (!s.has_extra) return;
  wake_sender(s);
  const auto index = static_cast<std::uint32_t>(&s - slots_);
  slot_extra& x = *extra_of(s);
  for (const stop_sign& p : x.stopped_pes) try {
      send_control(channel_to(p.pe), wire::record_kind::go, index, s.generation, 0);
    } catch (const error&) {  // that PE is gone: nobody is held back there any more
    }
  x.stopped_pes.clear();
}

void delivery::release_other() noexcept {
  if (heap != nullptr) {
    self->release_message(heap);
    heap = nullptr;
  } else if (from != nullptr) {
    if (from->ring.pop()) self->owner().wake(from->pe);
    from = nullptr;
  }
  if (form == wire::payload_form::block && payload != nullptr) {
    payload = nullptr;
    self->release_block(source_pe, block);
  }
}

void delivery::leave_ring() noexcept {
  if (from != nullptr && from->ring.pop()) self->owner().wake(from->pe);
  from = nullptr;
}

// The payload was read: its memory is the sender's again.
void pe::release_block(std::uint32_t source_pe, std::uint64_t offset) noexcept {
  node_.let_go(source_pe);
  try {
    send_control(channel_to(source_pe), wire::record_kind::release, 0, 0, offset);
  } catch (const std::exception&) {  // its node is gone, and its memory with it
  }
}

void pe::fail(delivery& d, std::exception_ptr why) noexcept {
  if (d.form == wire::payload_form::owned && d.method != nullptr) d.method->drop(d.payload);
  const handler* method = d.method;
  d.release();
  if (d.reply != 0) {
    reply_error(d.reply, d.source_pe, d.remote, method, std::move(why));
  } else {
    report_failed_post(method, std::move(why));
  }
}

void pe::report_failed_post(const handler* method, std::exception_ptr why) noexcept {
  const std::string_view of = method != nullptr ? method->class_name : "";
  try {
    report_failure(fmt::format("{}{}{} failed, and nobody waits for its result", of,
                               of.empty() ? "" : "::", method != nullptr ? method->method : "a process function"),
                   std::move(why));
  } catch (const std::bad_alloc&) {
    report_failure("a message failed, and nobody waits for its result", std::move(why));
  }
}

void pe::report_failure(std::string_view where, std::exception_ptr why) noexcept {
  if (stopping()) return;
  ++count_.failed_posts;
  node_.failure(*this, where, std::move(why));
}

void pe::report_unsent_post(const handler& method, std::uint32_t to, std::exception_ptr why) noexcept {
  if (stopping()) return;
  try {
    if (const auto [it, first] = unsent_.try_emplace({&method, node_.node_of(to)}, 0); !first) {
      ++count_.failed_posts;
      ++it->second;
      return;
    }
  } catch (const std::bad_alloc&) {  // then each is reported
  }
  report_failed_post(&method, std::move(why));
}

void pe::report_more_unsent() noexcept {
  for (const auto& [what, count] : unsent_)
    if (count != 0) node_.more_unsent(*this, what.first, what.second, count);
}

// --- replies -----------------------------------------------------------------------------------------------------

void pe::reply_in_place(std::uint64_t reply, std::uint32_t source_pe) {
  auto* s = reinterpret_cast<sink*>(reply);
  if (source_pe == id_) {
    s->state = sink::status::value;
    complete(*s);
    return;
  }
  channel& c = channel_to(source_pe);
  wire::envelope* e = try_reserve(c, wire::granule);
  if (e == nullptr) [[unlikely]] {
    send_control(c, wire::record_kind::reply, 0, 0, reply);
    return;
  }
  e->kind = wire::record_kind::reply;
  e->form = wire::payload_form::refs;
  e->padding = 0;
  e->reply = reply;
  commit(c, wire::granule);
}

void pe::reply_small(std::uint64_t reply, std::uint32_t source_pe, const std::byte (&result)[wire::small_result]) {
  channel& c = channel_to(source_pe);
  wire::envelope* e = try_reserve(c, wire::granule);
  if (e == nullptr) [[unlikely]] {
    std::uint32_t words[2];
    std::uint64_t rest;
    std::memcpy(words, result, sizeof words);
    std::memcpy(&rest, result + sizeof words, sizeof rest);
    send_control(c, wire::record_kind::small_reply, words[0], words[1], reply, nullptr, 0, rest);
    return;
  }
  e->kind = wire::record_kind::small_reply;
  e->form = wire::payload_form::refs;
  e->padding = 0;
  std::memcpy(e->result(), result, sizeof result);
  e->reply = reply;
  commit(c, wire::granule);
}

namespace {
void shorten(std::string& text, std::size_t most) {
  if (text.size() <= most) return;
  const std::size_t cut = text.size() - most;
  text.resize(most);
  text += fmt::format("... ({} more bytes)", cut);
}
}  // namespace

void pe::reply_error(std::uint64_t reply, std::uint32_t source_pe, bool remote, const handler* method,
                     std::exception_ptr why) noexcept {
  if (!remote) {
    auto* s = reinterpret_cast<sink*>(reply);
    s->error = as_received(why, where_is(method, id_));
    if (source_pe == id_) {
      s->state = sink::status::error;
      complete(*s);
      return;
    }
    try {
      send_control(channel_to(source_pe), wire::record_kind::failure, 0, 0, reply);
    } catch (const error&) {  // only while shutting down
    }
    return;
  }
  try {
    wire_exception e = encode_exception(why);
    channel& c = channel_to(source_pe);
    if (!c.lost) {  // a record that does not fit into the ring would never leave
      constexpr std::size_t rest = 1024;
      shorten(e.type, rest / 2);
      if (e.state.size() > c.ring.max_record() / 2) e.state.clear();  // it arrives as a remote_error with the text
      const std::size_t others = orrery::wire_size(e) - e.what.size() + rest;
      const std::size_t most = c.ring.max_record();
      shorten(e.what, most > others ? most - others : 0);
    }
    std::vector<std::byte> bytes(orrery::wire_size(e));
    orrery::writer w(bytes);
    orrery::write(w, e);
    send_control(c, wire::record_kind::failure, 0, 0, reply, bytes.data(), bytes.size(),
                 method != nullptr ? method->index + std::uint64_t{1} : 0);
  } catch (const error&) {  // the caller's node is gone: nobody waits
  }
}

std::uint32_t pe::pend(sink& s) {
  if (stage_.load(std::memory_order_relaxed) > shutdown_stage::finishing) [[unlikely]]
    std::rethrow_exception(ending("a call to another node"));
  constexpr std::uint32_t index_bits = 22;
  std::uint32_t index = free_pending_;
  if (index != 0) {
    free_pending_ = pending_[index].next;
  } else {
    index = static_cast<std::uint32_t>(pending_.size());
    if (index >> index_bits)
      throw world_error(errc::world_too_large, "more than 4,194,303 calls to other nodes wait on one PE");
    pending_.emplace_back();
  }
  pending_[index].waiting = &s;
  s.entry = index | (pending_[index].generation << index_bits);
  return s.entry;
}

sink* pe::take_pending(std::uint32_t entry) noexcept {
  constexpr std::uint32_t index_bits = 22;
  const std::uint32_t index = entry & ((1U << index_bits) - 1);
  if (index == 0 || index >= pending_.size()) return nullptr;
  pending& p = pending_[index];
  if (p.waiting == nullptr || (p.generation & 0x3ff) != entry >> index_bits) return nullptr;
  sink* s = p.waiting;
  p.waiting = nullptr;
  p.generation = (p.generation + 1) & 0x3ff;
  if (p.generation == 0) p.generation = 1;
  p.next = free_pending_;
  free_pending_ = index;
  s->entry = 0;
  return s;
}

}  // namespace orrery::scheduler
