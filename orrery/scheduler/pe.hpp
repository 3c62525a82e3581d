// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/channel.hpp>
#include <orrery/scheduler/counters.hpp>
#include <orrery/scheduler/fiber_pool.hpp>
#include <orrery/scheduler/handler.hpp>
#include <orrery/scheduler/idle_queue.hpp>
#include <orrery/scheduler/jump_prefetcher.hpp>
#include <orrery/scheduler/message.hpp>
#include <orrery/scheduler/run_queue.hpp>
#include <orrery/scheduler/slot.hpp>
#include <orrery/transport/ring.hpp>
#include <orrery/transport/wait.hpp>
#include <orrery/wire/address.hpp>
#include <orrery/wire/error.hpp>

#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

// Glossary of this layer
//   slot        a process as its PE keeps it            activation  a method that runs or is parked
//   message     an envelope in a mailbox                delivery    a message on its way into a handler
//   sink        where the result of a call goes         channel     the way to another PE
//   fiber       a stack; loop fibers run the scheduler between methods, function fibers belong to one process
namespace orrery::scheduler {

class io_engine;
class node;
class pe;
class trace_buffer;
struct simulated_pe;

/// The PE of the calling thread, or null outside the runtime.
extern constinit thread_local pe* current_pe;

/// A method, remote function or process function that runs or is parked; it lies on the stack that runs it.
struct activation {
  slot* process;
  const handler* method;  ///< null for a constructor run inline, or a process function
  activation* below;      ///< the caller's, when this one was called inline
  const struct delivery* serving = nullptr;  ///< the message, of which who waits is known; null if called inline
  fiber* on = nullptr;                       ///< set while it is parked
};

/// The way of a call that is not for an address: it finds its process on the way, as that to an element of an array does. Lives as long as the sink.
struct call_route {
  std::uint64_t call = 0;  ///< by which the answer finds the sink; 0: it went to the sink's target after all
  /// The process, if it is on this PE; else null, and whatever follows the call, if anything does, is to go on with pe::follow at the process.
  virtual address follow(pe&, std::span<const std::byte> probe) const = 0;
  [[nodiscard]] virtual std::string text() const = 0;

 protected:
  ~call_route() = default;
};

/// Where the result of a call goes. It lies on the stack of a caller that waits, or in the state of a future; always on the
/// PE that made the call, and is touched by that PE only, except that a callee on the same node constructs the result in place before it
/// says so.
struct sink {
  enum class status : std::uint8_t { waiting, value, error };

  /// Called on the caller's PE when `state` has left `waiting`, and once more by the loop each time that it calls run_later.
  void (*on_done)(pe&, sink&) = nullptr;
  /// Reads the result from its wire form. Throws bad_message.
  void (*decode)(sink&, const std::byte* data, std::size_t bytes) = nullptr;
  void* storage = nullptr;  ///< where the callee constructs the result, inside a node
  std::exception_ptr error;
  address target{};
  const handler* method = nullptr;
  fiber* waiter = nullptr;
  slot* caller = nullptr;  ///< the process that made the call
  call_route* route = nullptr;
  std::uint32_t home = 0;  ///< PE
  std::uint32_t entry = 0;  ///< in the table of pending calls; 0: none (the call stays inside the node)
  status state = status::waiting;
  std::uint8_t small = 0;  ///< bytes of a result that record_kind::small_reply carries
};

/// A fiber that waits until a mailbox has room; on its stack.
struct room_wait {
  address at;
  std::uint32_t stop;  ///< of a process of another PE: the number of the stop sign
  std::uint64_t number;  ///< of waits of this kind on this PE
  fiber* on;
  bool over = false;  ///< it was woken
  std::string cycle;  ///< not empty: the wait would never end
};

/// A message on its way into a handler.
struct delivery {
  pe* self = nullptr;
  message* heap = nullptr;  ///< it lies in a message, or
  inbound* from = nullptr;  ///< it lies at the front of this ring, or (both null) nowhere any more
  const handler* method = nullptr;
  std::byte* payload = nullptr;
  std::size_t payload_bytes = 0;
  std::uint64_t reply = 0;
  std::uint64_t block = 0;  ///< offset of the payload block in the sender's segment, for form::block
  std::uint32_t source_pe = 0;
  wire::payload_form form = wire::payload_form::wire;
  bool remote = false;  ///< from another node

  /// Gives the message's memory back. The payload must have been moved out.
  inline void release() noexcept;
  void release_other() noexcept;
  /// Gives back the record in the ring, but keeps a payload that lies in a block. For who reads it in place and may park.
  void leave_ring() noexcept;
};

/// What the runtime was started with that PEs need; see the runtime's options.
struct pe_settings {
  std::size_t method_stack = 256 << 10;
  std::size_t function_stack = 64 << 10;
  std::uint32_t mailbox_bytes = 256 << 10;
  std::uint64_t ring_bytes = 128 << 10;
  std::int64_t spin_ns = 50'000;
  bool yield = false;  ///< more PEs than cores: give the core away instead of spinning
  fiber_pool* fibers = nullptr;  ///< shared by all PEs of a simulation; null: the PE has its own
};

/// What a PE says of itself when it goes to sleep; quiescence.cpp adds them up. In memory that all nodes see.
struct alignas(32) idleness {
  static constexpr std::uint64_t is_idle = 1;
  static constexpr std::uint64_t waits_for_quiescence = 2;  ///< a process of the PE
  static constexpr unsigned gone_shift = 2;

  std::atomic<std::uint64_t> sent{0};  ///< bytes, in the rings to PEs that are not lost
  std::atomic<std::uint64_t> received{0};
  std::atomic<std::uint64_t> idle{0};  ///< 0, or the flags and, above them, how many nodes the PE knows to be gone
  std::atomic<std::uint64_t> dead{0};  ///< of the first PE: it has found that nothing will ever happen again
};

/// The whole world when all its PEs are idle.
struct idle_world {
  std::uint64_t sent;
  std::uint64_t gone;  ///< nodes that have left or were lost
  bool someone_waits;
  bool operator==(const idle_world&) const = default;
};

/// A fiber that waits for a point in time.
struct timer {
  fiber* waiter;
  slot* process = nullptr;  ///< set if it waits in receive
  bool fired = false;
};
using timer_queue = std::multimap<std::int64_t, timer*>;

/// How far a PE has come in shutting down; see pe_shutdown.cpp.
enum class shutdown_stage : std::uint8_t { running, finishing, cancelling, quiet, destroying, ended };

/// Something of a PE in which processes wait for others, and that has to know when they will wait in vain. Registered with the PE, which it
/// must not outlive. Called on the PE, between methods; must not park.
class wait_watcher {
 public:
  /// Some PEs are not reachable any more.
  virtual void pes_lost(pe& self) noexcept = 0;
  /// The runtime shuts down: whoever waits is to be woken, and to throw stopped.
  virtual void cancel_waits(pe& self) noexcept = 0;
  /// What those should know who read why a world is dead: lines that begin with two blanks.
  [[nodiscard]] virtual std::string explain_waits() const { return {}; }

 protected:
  virtual ~wait_watcher() = default;

 private:
  friend class pe;
  std::size_t place_ = 0;
};

/// What a layer above keeps on each PE. Made, used and destroyed on the PE's thread.
struct pe_annex {
  pe_annex() = default;
  pe_annex(const pe_annex&) = delete;
  pe_annex& operator=(const pe_annex&) = delete;
  virtual ~pe_annex() = default;
  /// In a simulation: the PE will run soon, and what it has is in no cache. Called with `step` 0 to fetch_steps - 1, some time after each other, so
  /// that each step may read what the one before has asked for (the first may read the annex).
  virtual void fetch(int /*step*/) const noexcept {}
  /// A process gives the PE work that it will do later: a number, other than 0, if it is this layer that counts it as work of something of its own
  /// until end_work of that number.
  virtual std::uint64_t begin_work(const slot& /*by*/) noexcept { return 0; }
  virtual void end_work(std::uint64_t /*number*/) noexcept {}
  /// What this layer calls a process, for reports; empty: it has no name for it.
  [[nodiscard]] virtual std::string name_of(const slot&) const { return {}; }
  static constexpr int fetch_steps = 4;
};
/// Which layer's.
enum class annex_of : std::uint8_t { array, shared, service, task };
inline constexpr std::size_t annex_count = 4;

/// A processing element: one scheduler loop on one OS thread, and the processes that live there.
///
/// Problem: millions of objects must look as if each had a thread, at the cost of a function call.
/// So a method runs to completion on the loop's own fiber; only one that blocks is parked, fiber and all, and the loop
/// goes on with another fiber. A fiber whose method ends becomes the loop again, so that parking and resuming cost one
/// switch each.
///
/// Owned by its node; used by its own thread only, except where said.
/// Invariants: (1) exactly one fiber of the PE runs; (2) a slot is in the run queue iff its state is `scheduled`; (3) an `idle` slot has
/// an empty mailbox; (4) a slot with depth > 0 is `running`, unless its class is reentrant.
class pe {
 public:
  pe(node& owner, std::uint32_t id, transport::doorbell& bell, const pe_settings& settings);
  pe(const pe&) = delete;
  pe& operator=(const pe&) = delete;
  ~pe();

  [[nodiscard]] std::uint32_t id() const noexcept { return id_; }
  [[nodiscard]] node& owner() const noexcept { return node_; }
  [[nodiscard]] const pe_settings& settings() const noexcept { return settings_; }

  /// Runs the scheduler on the calling thread until stop() was called.
  void run();
  /// Makes run() return, from any thread.
  void stop() noexcept;
  [[nodiscard]] bool stopping() const noexcept { return stop_.load(std::memory_order_relaxed); }
  /// True while nothing may be waited for any more, because the runtime shuts down: throw `refuse`.
  [[nodiscard]] bool refusing() const noexcept { return refusing_; }
  /// Lets others run, and throws stopped.
  [[noreturn]] void refuse(const char* what);
  /// The `stopped` of who waits for `about` when the program, or the world that it has joined, comes to its end.
  [[nodiscard]] std::exception_ptr ending(std::string_view about) const;

  // --- processes -----------------------------------------------------------------------------------------------
  /// The process behind an address of this PE, or null if it is gone.
  [[nodiscard]] slot* find(std::uint32_t index, std::uint32_t generation) const noexcept {
    if (index >= slot_count_) [[unlikely]]
      return nullptr;
    slot* s = slots_ + index;
    return s->generation == generation && s->state != process_state::free ? s : nullptr;
  }
  [[nodiscard]] address address_of(const slot& s) const noexcept {
    return {id_, static_cast<std::uint32_t>(&s - slots_), s.generation};
  }
  /// A fresh slot in state `running`, without an object. Throws std::bad_alloc when the table is full.
  [[nodiscard]] slot& allocate_slot() {
    if (free_slot_ != wire::no_slot) {
      slot& s = slots_[free_slot_];
      free_slot_ = s.link;
      s.charge = 0;
      s.state = process_state::running;
      ++count_.processes;
      ++count_.spawned;
      return s;
    }
    return allocate_slot_slow();
  }
  /// Ends a process that has no active method: fails what waits in its mailbox, and gives the slot back. Does not touch the object.
  void free_slot(slot& s) noexcept;
  /// After a method: what is next for the process.
  void settle(slot& s) {
    if (s.has_messages()) {
      s.state = process_state::scheduled;
      runnable_.push(s);
    } else {
      s.state = process_state::idle;
    }
  }
  /// Puts a process that was not runnable into the run queue.
  void make_runnable(slot& s) {
    s.state = process_state::scheduled;
    runnable_.push(s);
  }
  /// Runs the destructor of a process that has no active method, and ends it.
  void destroy(slot& s);
  /// Runs the destructor, after the names of the process were cleared. May park.
  void end_object(slot& s) noexcept;

  // --- messages to processes of this PE -------------------------------------------------------------------------
  [[nodiscard]] message* allocate_message(std::size_t payload) { return pool_.allocate(payload); }
  void release_message(message* m) noexcept { pool_.release(m); }
  /// Appends to the mailbox.
  void push(slot& s, message* m) { push(s, m, m->charge()); }
  /// The same, where the charge is known: to read what has just been written costs a wait for it.
  void push(slot& s, message* m, std::uint32_t charge) {
    s.push_back(m);
    s.charge += charge;
    if (s.state <= process_state::receiving) {
      s.state = process_state::scheduled;
      if (active_ != nullptr) {
        runnable_.push_recent(s);
      } else {
        runnable_.push(s);
      }
    } else if (m->head.reply != 0 && s.state == process_state::running && !s.suspected) [[unlikely]] {
      suspect(s);
    }
  }
  /// A caller waits for a process that is in the middle of a method: if that one waits too, there may be a cycle.
  void suspect(slot& s);
  /// The same for a call that the layer above has led to `s`, which is to be in its mailbox next.
  void suspect_if_waiting(slot& s) {
    if (s.state == process_state::running && !s.suspected) [[unlikely]]
      suspect(s);
  }
  /// Goes on with what has followed a call (call_route::follow) at the process that it went to. Throws bad_message.
  void follow(std::span<const std::byte> probe, slot& at);
  [[nodiscard]] bool over_limit(const slot& s) const noexcept {
    return s.charge > settings_.mailbox_bytes / charge_unit;
  }
  /// Parks the caller until the mailbox has room or the process has ended. Throws mailbox_full if the caller is that process
  /// itself, stopped.
  void wait_for_room(slot& s);
  void made_room_if_low(slot& s) {
    if (s.charge <= settings_.mailbox_bytes / (2 * charge_unit)) made_room(s);
  }
  void made_room(slot& s);  ///< called when bytes fell to half of the limit and there is an `extra`
  /// Null if it has none.
  [[nodiscard]] slot_extra* extra_of(const slot& s) noexcept;
  /// Wakes the oldest who waits for room. It wakes the next when it has found some: to wake all at once, of whom most find the
  /// mailbox full again, would cost the square of their number.
  void wake_sender(slot& s);

  /// Describes a message of a mailbox.
  void load(delivery& d, message& m) noexcept {
    d.self = this;
    d.heap = &m;
    d.method = reinterpret_cast<const handler*>(m.head.handler);
    d.payload = m.payload();
    d.payload_bytes = m.head.payload_bytes();
    d.reply = m.head.reply;
    d.source_pe = m.source_pe;
    d.form = m.head.form;
    d.remote = d.form == wire::payload_form::wire || d.form == wire::payload_form::block;
    if (d.form == wire::payload_form::block) [[unlikely]]
      find_block(d);
  }
  /// Executes a message at a process that is idle (or a fresh slot); on return the process is settled.
  void execute(slot& s, delivery& d);
  /// Disposes of a message that cannot be executed: tells the caller, or the error handler.
  void fail(delivery& d, std::exception_ptr why) noexcept;
  void release_block(std::uint32_t source_pe, std::uint64_t offset) noexcept;
  /// A one-way message failed: one line on stderr, counted.
  void report_failed_post(const handler* method, std::exception_ptr why) noexcept;
  /// One line on stderr for what nobody waits for, and counted as failed posts are: where it went wrong, or all there is to say, and how if that is not null.
  void report_failure(std::string_view where, std::exception_ptr why) noexcept;
  /// A one-way message was not sent, as the node of PE `to` is lost: counted. Who posts in a loop would fill the log: of the messages of a method
  /// to a node the first is reported at once, how many followed when the PE ends.
  void report_unsent_post(const handler& method, std::uint32_t to, std::exception_ptr why) noexcept;

  // --- messages to other PEs ------------------------------------------------------------------------------------
  /// The channel to a PE. Throws node_lost or world_error.
  [[nodiscard]] channel& channel_to(std::uint32_t to) {
    if (channel* c = channels_.find(to); c != nullptr && !c->lost) [[likely]]
      return *c;
    return open_channel(to);
  }
  /// Space for a record; parks while the ring is full. Throws node_lost. The caller fills everything but `size` and commits
  /// without parking in between.
  [[nodiscard]] wire::envelope* reserve(channel& c, std::uint32_t bytes) {
    if (!c.slow) [[likely]]
      if (wire::envelope* e = c.ring.reserve(bytes)) [[likely]]
        return e;
    return reserve_slow(c, bytes);
  }
  /// As reserve, but null instead of parking.
  [[nodiscard]] wire::envelope* try_reserve(channel& c, std::uint32_t bytes) noexcept {
    return c.slow ? nullptr : c.ring.reserve(bytes);
  }
  void commit(channel& c, std::uint32_t bytes) noexcept {
    c.ring.commit(bytes);
    if (c.link == nullptr) [[likely]] {
      transport::notify(*c.bell, c.shared_bell);
    } else {
      carry(c, bytes);
    }
    ++count_.sent;
    count_.sent_bytes += bytes;
  }
  /// Sends a record without a payload of user data, from anywhere, never parking.
  void send_control(channel& c, wire::record_kind kind, std::uint32_t slot, std::uint32_t generation,
                    std::uint64_t word, const void* payload = nullptr, std::size_t payload_bytes = 0,
                    std::uint64_t word2 = 0) noexcept;
  /// Moves a message that is being routed (handler::route) out of its ring, if it lies in one. It is the caller's then.
  [[nodiscard]] message* detach(delivery& d, const wire::envelope& e, std::uint32_t bytes) {
    return d.heap != nullptr ? d.heap : to_message(d, e, bytes);
  }
  /// Tells a PE to send nothing to the process until its mailbox has room again.
  void hold_back(slot& s, std::uint32_t source_pe);
  /// Parks while the process at a distant PE has told this PE to hold back. A method that sends and sends, while the receiver makes
  /// room in the ring as fast, would never hear that: after each ring full of records it listens. True if others have run meanwhile.
  bool wait_while_stopped(address to) {
    if (stopped_.empty() && unheard() <= settings_.ring_bytes) [[likely]]
      return false;
    return wait_while_stopped_slow(to);
  }
  /// True where nothing should be sent to the process without waiting: its PE has told this one to hold back, or has told it so of some
  /// process, and a ring full of records was sent without listening for which. `to.slot`: no_slot if it is not known which process it will be.
  [[nodiscard]] bool is_stopped(address to) const {
    if (stopped_.empty() && unheard() <= settings_.ring_bytes) [[likely]]
      return false;
    return is_stopped_slow(to);
  }
  /// Lets others run, and looks at what has come from other PEs.
  void listen();

  // --- replies --------------------------------------------------------------------------------------------------
  /// The result was constructed in the sink's storage (a caller on this node): tells the caller. Never parks.
  void reply_in_place(std::uint64_t reply, std::uint32_t source_pe);
  /// The same with a result of sink::small bytes for a caller on another PE of this node: it travels in the record, so that no line of
  /// the caller's stack has to.
  void reply_small(std::uint64_t reply, std::uint32_t source_pe, const std::byte (&result)[wire::small_result]);
  /// The call ended with an exception: the caller gets what as_received() makes of it. Never parks.
  void reply_error(std::uint64_t reply, std::uint32_t source_pe, bool remote, const handler* method,
                   std::exception_ptr why) noexcept;
  /// The sink's state has left `waiting`: wakes who waits.
  void complete(sink& s);
  /// Calls s.on_done from the loop, as a process of its own: it may park.
  void run_later(sink& s) { runnable_.push(s); }
  /// Runs the task, as a process of its own, when there is nothing else to run here; if what it throws is not caught, it is reported like that of a
  /// post. Throws stopped.
  void run_when_idle(std::unique_ptr<idle_task> t);

  /// Registers a sink in the table of pending calls; it stays there until the reply or the loss of the node.
  std::uint32_t pend(sink& s);

  // --- waiting --------------------------------------------------------------------------------------------------
  /// Throws usage_error unless the caller is a process (and may park).
  void require_process() const;
  [[nodiscard]] address self() const noexcept {
    return active_ != nullptr ? address_of(*active_->process) : address{id_, wire::no_slot, 0};
  }
  [[nodiscard]] fiber* running() const noexcept { return current_; }
  [[nodiscard]] activation* active() const noexcept { return active_; }
  /// True if there is stack left to run another method inline.
  [[nodiscard]] bool room_on_stack() const noexcept {
    return static_cast<const std::byte*>(__builtin_frame_address(0)) > current_->limit;
  }
  /// Parks the running fiber until ready(). Something must be sure to call that.
  void park();
  /// The fiber's wait is over.
  void ready(fiber& f) {
    if (f.queued) return;  // a result and a time-out may come at once
    f.queued = 1;
    runnable_.push(f);
  }
  /// Lets others run first.
  void yield();
  /// Parks until the deadline (CLOCK_MONOTONIC, ns) or ready(); true if the deadline came first. Throws stopped.
  bool park_until(std::int64_t deadline_ns);
  /// Waits until the sink is done.
  void wait(sink& s);
  /// The same until a deadline; false if it came first.
  bool wait_until(sink& s, std::int64_t deadline_ns);

  /// Parks until nothing is queued, running or on its way anywhere in the world but for those who wait here too. Throws stopped.
  void wait_for_quiescence();

  void push_activation(activation& a) noexcept {
    a.below = active_;
    active_ = &a;
    if (trace_ != nullptr) [[unlikely]]
      trace_begin(a);
  }
  void pop_activation(activation& a) noexcept {
    if (trace_ != nullptr) [[unlikely]]
      trace_end(a);
    active_ = a.below;
  }

  // --- I/O --------------------------------------------------------------------------------------------------------
  /// This PE's I/O, made at the first call. Throws usage_error, std::bad_alloc.
  [[nodiscard]] io_engine& io() {
    if (io_ == nullptr) [[unlikely]]
      make_io();
    return *io_;
  }
  /// Requests that the kernel has not done yet.
  [[nodiscard]] std::uint32_t io_outstanding() const noexcept;
  // For io_engine.
  void io_begins() noexcept { io_active_ = io_.get(); }
  void io_ends() noexcept { io_active_ = nullptr; }
  /// The next poll is not to be far away.
  void poll_soon() noexcept {
    if (ticks_ > 8) ticks_ = 8;
  }

  // --- function processes ---------------------------------------------------------------------------------------
  /// Gives the process a fiber of its own which runs entry(argument) when it is scheduled.
  fiber* make_function_fiber(void (*entry)(fiber&, void*), void* argument);
  /// What every new fiber does first.
  void finish_fiber() { fibers_->finish(); }
  /// Ends the running function fiber and its process.
  [[noreturn]] void end_function(slot& s) noexcept;
  /// Parks the running function process until a message arrives; `deadline_ns` -1: for ever. False on timeout.
  bool await_message(slot& s, std::int64_t deadline_ns);

  /// What a layer keeps here; null until it has put something there.
  [[nodiscard]] std::unique_ptr<pe_annex>& annex(annex_of layer) noexcept {
    return annexes_[static_cast<std::size_t>(layer)];
  }

  /// From now until unwatch w hears of lost PEs and of the end.
  void watch(wait_watcher& w) {
    w.place_ = watchers_.size();
    watchers_.push_back(&w);
  }
  void unwatch(wait_watcher& w) noexcept {
    watchers_[w.place_] = watchers_.back();
    watchers_[w.place_]->place_ = w.place_;
    watchers_.pop_back();
  }

  /// Before run(): what the PE does is recorded there. The buffer outlives the PE.
  void trace_to(trace_buffer& buffer) noexcept { trace_ = &buffer; }
  [[nodiscard]] counters& count() noexcept { return count_; }
  /// The counters as other threads see them.
  [[nodiscard]] published_counters published() const noexcept { return publisher_.words(); }
  [[nodiscard]] transport::doorbell& bell() noexcept { return bell_; }

  /// Null outside of simulations.
  [[nodiscard]] simulated_pe* simulated() const noexcept { return sim_; }

  /// Called by any thread: a ring into this PE was made.
  void add_inbound(std::unique_ptr<inbound> in);
  /// Called by any thread: the PE will call f(argument) between methods; f must not wait or throw. Throws std::bad_alloc.
  void run_errand(void (*f)(void*), void* argument);

 private:
  friend class node;
  friend class simulator;
  static void loop_entry(fiber& self, void* pe_pointer);
  void loop();
  void run_slot(slot& s);
  void fetch_ahead() const noexcept;
  /// Runs f as a process of its own, which may park; `name` is what it is called in traces and reports.
  template <class F>
  void as_process(const handler& name, F f) {
    slot& process = allocate_slot();
    activation a{&process, &name, nullptr};
    push_activation(a);
    process.active = &a;
    process.depth = 1;
    f();
    pop_activation(a);
    free_slot(process);
  }
  void run_sink(sink& s);
  /// Runs what has waited longest for this PE to be idle; there must be some. False: nothing runs any more, and all of it is dropped.
  bool run_idle_task();
  void run_messages(slot& s);
  inline bool run_one(slot& s, delivery& d);
  void find_block(delivery& d) noexcept;
  void resume(fiber& f);
  void switch_to(fiber& to);
  [[gnu::cold]] void trace_begin(const activation& a) noexcept;
  [[gnu::cold]] void trace_end(const activation& a) noexcept;
  bool poll();
  bool drain(inbound& in);
  void receive_record(inbound& in, wire::envelope& e, std::uint32_t bytes);
  void receive_message(inbound& in, wire::envelope& e, std::uint32_t bytes);
  void receive_reply(inbound& in, wire::envelope& e, std::uint32_t bytes);
  bool serve_channels();
  // In a simulation; pe_simulated.cpp.
  void carry(channel& c, std::uint32_t bytes) noexcept;
  bool turn();
  bool poll_simulated();
  bool fire_timers();
  void fire(timer& t);
  void idle();
  bool spin(std::int64_t begin, std::int64_t due, bool nothing_due);
  bool at_rest(std::int64_t begin, std::int64_t now);
  void sleep(std::int64_t begin, std::int64_t due);
  [[nodiscard]] bool anything_inbound() noexcept;
  void adopt_inbound();
  void lose_channel(channel& c);
  void report_lost_posts(const channel& c) noexcept;
  void report_lost_posts(std::uint32_t to, std::uint64_t count) noexcept;
  void tell_of_lost_messages() noexcept;
  void report_more_unsent() noexcept;
  void lose_gone();
  void refuse_peer(std::uint32_t peer) noexcept;
  slot& allocate_slot_slow();
  channel& open_channel(std::uint32_t pe);
  wire::envelope* reserve_slow(channel& c, std::uint32_t bytes);
  bool wait_while_stopped_slow(address to);
  [[nodiscard]] bool is_stopped_slow(address to) const;
  // Bytes sent since the PE last looked at what has come.
  [[nodiscard]] std::uint64_t unheard() const noexcept { return count_.sent_bytes - sent_when_heard_; }
  /// Parks the running fiber, which is in a list of those that wait for room, until it is woken. Throws deadlock_error.
  void park_for_room(address at, std::uint32_t stop);
  sink* take_pending(std::uint32_t entry) noexcept;
  void park_reentrant() noexcept;
  // Shutting down; pe_shutdown.cpp.
  bool wind_down(bool busy);
  [[noreturn]] void leave_loop() noexcept;
  void end() noexcept;
  void set_stage(shutdown_stage s) noexcept;
  void end_stages() noexcept;
  void watch_progress(std::uint64_t measure, std::int64_t now) noexcept;
  void cancel_waits();
  void destroy_all();
  void make_io();
  [[nodiscard]] bool waits_for_files() const noexcept;
  void refuse_mailbox(slot& s);
  [[nodiscard]] std::exception_ptr refusal(const handler* method) const;
  void drop_leftovers() noexcept;
  [[nodiscard]] bool everyone(shutdown_stage s, std::int64_t now) const noexcept;
  message* to_message(delivery& d, const wire::envelope& e, std::uint32_t bytes);
  void mark_busy(channel& c);
  void wake_waiters(channel& c);
  void wake_all(fiber* list);
  // Quiescence; quiescence.cpp.
  void rest() noexcept;
  void end_rest() noexcept;
  std::int64_t look_for_quiescence(std::int64_t now);
  [[nodiscard]] std::string describe_waits() const;
  [[nodiscard]] std::string describe(const slot& s) const;
  void tell_waits();
  // Deadlock detection; deadlock.cpp.
  struct probe;
  bool chase_suspects();
  void fail_sender(const probe& p);
  void chase(probe& p, bool first);
  void receive_probe(inbound& in, const wire::envelope& e, std::uint32_t bytes);
  void send_probe(std::uint32_t to, const probe& p);
  void fail_victim(const probe& p);
  static bool read_probe(probe& p, std::span<const std::byte> from) noexcept;

  slot_extra& make_extra(slot& s);
  void drop_extra(slot& s) noexcept;

  // What every message touches.
  slot* slots_ = nullptr;
  std::uint32_t slot_count_ = 0;
  std::uint32_t free_slot_ = wire::no_slot;
  std::uint32_t id_;
  std::int32_t ticks_ = 0;
  fiber* current_ = nullptr;
  activation* active_ = nullptr;
  run_queue runnable_;
  jump_prefetcher prefetcher_;
  message_pool pool_;
  counters count_;
  std::uint64_t sent_when_heard_ = 0;
  trace_buffer* trace_ = nullptr;  // null: not traced
  counter_publisher publisher_;
  std::unique_ptr<pe_annex> annexes_[annex_count];
  bool refusing_ = false;
  bool queueing_ = false;  // messages go into mailboxes even if their process is idle
  idle_queue when_idle_;

  fiber_pool* fibers_;
  std::uint32_t parked_methods_ = 0;  // loop fibers that methods are parked on
  std::uint32_t functions_ = 0;  // fibers of process functions
  simulated_pe* sim_ = nullptr;
  channel_table channels_;
  std::vector<channel*> busy_channels_;  // with waiters or deferred records
  std::vector<std::unique_ptr<inbound>> inbound_;
  struct held_back {
    std::uint32_t stop;
    fiber* waiters;
  };
  std::unordered_map<address, held_back> stopped_;  // processes that asked to hold back
  std::uint32_t stops_ = 0;  // that this PE has asked for
  std::uint64_t room_waits_ = 0;
  struct pending {
    sink* waiting = nullptr;
    std::uint32_t generation = 1;
    std::uint32_t next = 0;
  };
  std::vector<pending> pending_;
  std::uint32_t free_pending_ = 0;
  timer_queue timers_;
  io_engine* io_active_ = nullptr;  // while requests are outstanding
  std::unique_ptr<io_engine> io_;
  std::unordered_map<std::uint32_t, slot_extra> extras_;  // by slot
  std::map<std::pair<const handler*, std::uint32_t>, std::uint64_t>
      unsent_;  // posts after the first, by method and lost node
  std::vector<address> suspects_;
  std::vector<slot*>
      nameless_waits_;  // remote functions and constructors, whose callers know the PE only, that wait for calls
  fiber* quiescence_waiters_ = nullptr;
  bool resting_ = false;  // published as idle
  bool told_ = false;  // what it waits for, in a dead world
  std::uint64_t gone_nodes_ = 0;  // of which this PE knows
  std::int64_t next_look_ = 0;
  struct {
    std::int64_t ns = transport::now_ns();
    std::uint64_t ticks = transport::ticks();
  } clock_origin_;
  std::vector<wait_watcher*> watchers_;
  struct lost_message {
    const handler* method;
    std::uint32_t to;
    std::vector<std::byte> payload;
  };
  std::vector<lost_message> lost_messages_;  // for their handlers, when all channels to lost nodes are closed
  std::uint32_t polls_ = 0;

  std::atomic<bool> stop_{false};
  std::uint32_t announced_ = 0;
  std::atomic<shutdown_stage> stage_{shutdown_stage::running};
  std::atomic<std::int64_t> stalled_{0};  // when the PE last looked and found no progress for long; 0: it makes some
  std::int64_t stage_deadline_ = 0;
  std::uint64_t stage_measure_ = 0;
  node& node_;
  transport::doorbell& bell_;
  pe_settings settings_;
  std::size_t slot_capacity_ = 0;
  std::unique_ptr<fiber_pool> own_fibers_;  // outside of simulations
  fiber root_;

  std::mutex arrivals_mutex_;
  std::vector<std::unique_ptr<inbound>> arrivals_;  ///< rings that other threads have made
  std::vector<std::pair<void (*)(void*), void*>> errands_;
};

inline void delivery::release() noexcept {
  if (heap != nullptr && form != wire::payload_form::block) [[likely]] {
    self->release_message(heap);
    heap = nullptr;
    return;
  }
  release_other();
}

}  // namespace orrery::scheduler
