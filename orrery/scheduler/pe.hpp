// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/activation.hpp>
#include <orrery/scheduler/conditions.hpp>
#include <orrery/scheduler/counters.hpp>
#include <orrery/scheduler/delivery.hpp>
#include <orrery/scheduler/failure_log.hpp>
#include <orrery/scheduler/flow_control.hpp>
#include <orrery/scheduler/function_fibers.hpp>
#include <orrery/scheduler/handler.hpp>
#include <orrery/scheduler/idleness.hpp>
#include <orrery/scheduler/layer_state.hpp>
#include <orrery/scheduler/links.hpp>
#include <orrery/scheduler/message.hpp>
#include <orrery/scheduler/outbound.hpp>
#include <orrery/scheduler/pe_settings.hpp>
#include <orrery/scheduler/replies.hpp>
#include <orrery/scheduler/run_state.hpp>
#include <orrery/scheduler/shutdown.hpp>
#include <orrery/scheduler/sink.hpp>
#include <orrery/scheduler/slot.hpp>
#include <orrery/transport/ring.hpp>
#include <orrery/transport/wait.hpp>
#include <orrery/wire/address.hpp>
#include <orrery/wire/error.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstdint>
#include <string>
#include <utility>

// Glossary of this layer
//   slot        a process as its PE keeps it            activation  a method that runs or is parked
//   message     an envelope in a mailbox
//   delivery    a message on its way into a handler
//   sink        where the result of a call goes         outbound    the way to another PE
//   fiber       a stack; loop fibers run the scheduler between methods, function fibers belong to
//               one process
namespace orrery::transport {
class carrier;
}

namespace orrery::scheduler {

class deadlock_detector;
struct fiber_pool;
class idle_queue;
struct idle_task;
class io_engine;
class node;
struct pe_parts;
class quiescence_detector;
struct simulated_pe;
struct timer;
class timer_queue;

/// The PE of the calling thread, or null outside the runtime.
// Initial-exec: position-independent code would call a function for its place, and keep its
// registers in memory around that. (8 bytes: there is room for them also in what is loaded later.)
[[gnu::tls_model("initial-exec")]] extern constinit thread_local pe* current_pe;

/// A processing element: one scheduler loop on one OS thread, and the processes that live there.
///
/// Problem: millions of objects must look as if each had a thread, at the cost of a function call.
/// So a method runs to completion on the loop's own fiber; only one that blocks is parked, fiber
/// and all, and the loop goes on with another fiber. A fiber whose method ends becomes the loop
/// again, so that parking and resuming cost one switch each.
///
/// The loop runs what is runnable, takes records out of rings, and sleeps when there is nothing to
/// do. All else is done by its parts, each of which is one mechanism with a header of its own;
/// docs/architecture.md has a table of them. The base has what every message touches.
///
/// Owned by its node; used by its own thread only, except where said. Its invariants are those of
/// run_state and of the parts.
class pe : public run_state {
 public:
  pe(node& owner, std::uint32_t id, transport::doorbell& bell, const pe_settings& settings);
  pe(const pe&) = delete;
  pe& operator=(const pe&) = delete;
  ~pe();

  [[nodiscard]] node& owner() const noexcept { return node_; }
  /// Null outside of simulations.
  [[nodiscard]] simulated_pe* simulated() const noexcept { return sim_; }

  /// Runs the scheduler on the calling thread until node::stop() was called.
  void run();
  [[nodiscard]] bool stopping() const noexcept { return shutdown_.requested(); }
  /// By which others wake it.
  [[nodiscard]] transport::doorbell& bell() noexcept { return bell_; }
  /// The counters as other threads see them.
  [[nodiscard]] published_counters published() const noexcept { return publisher_.words(); }
  /// Before run(): what the PE does is recorded there. The buffer outlives the PE.
  void trace_to(trace_buffer& buffer) noexcept {
    seen_by_.trace = &buffer;
    watch_ = &seen_by_;
  }
  [[nodiscard]] const pe_settings& settings() const noexcept { return settings_; }

  // --- messages ----------------------------------------------------------------------------------
  /// The outbound ring to a PE. Throws node_lost or world_error.
  [[nodiscard]] outbound& outbound_to(std::uint32_t to) {
    if (outbound* c = links_.find(to); c != nullptr && !c->lost) [[likely]]
      return *c;
    return links_.open(to);
  }
  /// Space for a record; parks while the ring is full. Throws node_lost. The caller fills
  /// everything but `size` and commits without parking in between.
  [[nodiscard]] wire::envelope* reserve(outbound& c, std::uint32_t bytes) {
    if (c.detour == 0) [[likely]]
      if (wire::envelope* e = c.ring.reserve(bytes)) [[likely]]
        return e;
    return links_.await_space(c, bytes);
  }
  void commit(outbound& c, std::uint32_t bytes) noexcept {
    c.ring.commit(bytes);
    if (c.link == nullptr) [[likely]] {
      transport::notify(*c.bell, c.shared_bell);
    } else {
      carry(c, bytes);
    }
    ++count_.sent;
    count_.sent_bytes += bytes;
  }
  /// Parks while the process at a distant PE has told this PE to hold back. A method that sends and
  /// sends, while the receiver makes room in the ring as fast, would never hear that: after each
  /// ring full of records it listens. True if others have run meanwhile.
  bool wait_while_stopped(address to) {
    if (flow_.nobody_stops(count_.sent_bytes)) [[likely]]
      return false;
    return flow_.wait_while_stopped(to);
  }
  /// True where nothing should be sent to the process without waiting: its PE has told this one to
  /// hold back, or has told it so of some process, and a ring full of records was sent without
  /// listening for which. `to.slot`: no_slot if it is not known which process it will be.
  [[nodiscard]] bool is_stopped(address to) const {
    if (flow_.nobody_stops(count_.sent_bytes)) [[likely]]
      return false;
    return flow_.is_stopped(to);
  }

  // --- waiting -----------------------------------------------------------------------------------
  /// Parks the running fiber until ready(). Something must be sure to call that.
  void park();
  /// Lets others run first.
  void yield();
  /// Parks until the deadline (CLOCK_MONOTONIC, ns) or ready(); true if the deadline came first.
  /// Throws stopped.
  bool park_until(std::int64_t deadline_ns);
  /// Waits until the sink is done.
  void wait(sink& s);
  /// The same until a deadline; false if it came first.
  bool wait_until(sink& s, std::int64_t deadline_ns);
  /// Runs the task, as a process of its own, when there is nothing else to run here; if what it
  /// throws is not caught, it is reported like that of a post. Throws stopped.
  void run_when_idle(wire::unique_ptr<idle_task> t);

  // --- parts -------------------------------------------------------------------------------------
  [[nodiscard]] scheduler::links& links() noexcept { return links_; }
  [[nodiscard]] flow_control& flow() noexcept { return flow_; }
  [[nodiscard]] scheduler::replies& replies() noexcept { return replies_; }
  [[nodiscard]] deadlock_detector& deadlocks() noexcept { return deadlocks_; }
  [[nodiscard]] scheduler::conditions& conditions() noexcept { return conditions_; }
  [[nodiscard]] quiescence_detector& quiescence() noexcept { return quiescence_; }
  [[nodiscard]] scheduler::shutdown& shutdown() noexcept { return shutdown_; }
  [[nodiscard]] failure_log& failures() noexcept { return failures_; }
  [[nodiscard]] function_fibers& functions() noexcept { return functions_; }
  [[nodiscard]] layer_states& layers() noexcept { return layers_; }
  /// This PE's I/O, made at the first call. Throws usage_error, std::bad_alloc.
  [[nodiscard]] io_engine& io() {
    if (io_ == nullptr) [[unlikely]]
      make_io();
    return *io_;
  }

 private:
  friend class function_fibers;
  friend class io_engine;
  friend class scheduler::links;
  friend class node;
  friend class scheduler::shutdown;
  friend class simulator;
  friend class stuck_watch;

  /// Makes run() return, from any thread.
  void stop() noexcept;
  void wait_for(sink& s);
  // The loop; pe.cpp.
  static void loop_entry(fiber& self, void* pe_pointer);
  void loop();
  [[noreturn]] void leave_loop() noexcept;
  void run_slot(slot& s);
  void run_sink(sink& s);
  template <bool Urgent>
  void run_messages(slot& s);
  [[gnu::cold]] void run_urgent();
  /// Executes a message at a process that is idle (or a fresh slot); on return the process is
  /// settled.
  void execute(slot& s, delivery& d);
  inline bool run_one(slot& s, delivery& d);
  void resume(fiber& f);
  void switch_to(fiber& to);
  void park_reentrant() noexcept;
  bool fire_timers();
  [[nodiscard]] bool took_long() noexcept;
  void fire(timer& t);
  void fire_all_timers();
  // Records from other PEs; pe_receive.cpp.
  bool poll();
  bool drain(inbound& in);
  void drain_lost(inbound& in);
  void receive_record(inbound& in, wire::envelope& e, std::uint32_t bytes);
  [[gnu::cold]] void receive_followed(inbound& in, wire::envelope& e, std::uint32_t bytes);
  [[gnu::always_inline]] inline void deal_with_record(inbound& in, wire::envelope& e, std::uint32_t bytes);
  [[gnu::cold]] void receive_annex(inbound& in, wire::envelope& e, std::uint32_t bytes);
  inline bool read_from_node(const inbound& in, const wire::envelope& e, delivery& d);
  void receive_message(inbound& in, wire::envelope& e, std::uint32_t bytes);
  // When there is nothing to run; pe_idle.cpp.
  bool run_idle_task();
  void idle();
  bool spin(std::int64_t begin, std::int64_t due, bool nothing_due);
  bool at_rest(std::int64_t begin, std::int64_t now);
  void sleep(std::int64_t begin, std::int64_t due);
  [[nodiscard]] bool anything_inbound() noexcept;
  // In a simulation; pe_simulated.cpp.
  void carry(outbound& c, std::uint32_t bytes) noexcept;
  bool turn();
  bool poll_simulated();
  // I/O; io.cpp.
  void make_io();
  void io_begins() noexcept { io_active_ = io_.get(); }
  void io_ends() noexcept { io_active_ = nullptr; }
  [[nodiscard]] bool waits_for_files() const noexcept;

  // Members that messages touch after those of the base.
  flow_control flow_;
  counter_publisher publisher_;
  layer_states layers_;
  // A reference here names each part that lies there: who includes this header reads none of their
  // headers.
  const wire::unique_ptr<pe_parts> parts_;
  idle_queue& when_idle_;
  fiber_pool* fibers_;
  std::uint32_t parked_methods_ = 0;  // loop fibers that methods are parked on
  std::uint32_t polls_ = 0;
  simulated_pe* sim_ = nullptr;
  scheduler::links links_;
  scheduler::replies replies_{*this};
  timer_queue& timers_;
  io_engine* io_active_ = nullptr;  // while requests are outstanding
  wire::unique_ptr<io_engine> io_;
  transport::carrier* carrier_ = nullptr;  // null in a world of one machine
  deadlock_detector& deadlocks_;
  scheduler::conditions conditions_{*this};
  quiescence_detector& quiescence_;
  failure_log failures_{*this};
  function_fibers functions_{*this};
  scheduler::shutdown shutdown_{*this};
  struct {
    std::int64_t ns = transport::now_ns();
    std::uint64_t ticks = transport::ticks();
  } clock_origin_;
  std::uint64_t asked_time_ = 0;  // of took_long, in transport::ticks()
  node& node_;
  transport::doorbell& bell_;
  pe_settings settings_;
  pe_watch seen_by_;
  wire::unique_ptr<causality> own_order_;
  wire::unique_ptr<fiber_pool> own_fibers_;  // outside of simulations
  fiber root_;
};

inline void run_state::complete(sink& s) {
  if (watch_ != nullptr) [[unlikely]]
    watch_complete(s);
  if (s.waiter != nullptr) {
    fiber* f = s.waiter;
    s.waiter = nullptr;
    ready(*f);
  }
  if (s.on_done != nullptr) s.on_done(static_cast<pe&>(*this), s);
}

inline void delivery::release() noexcept {
  if (heap != nullptr && form != wire::payload_form::block) [[likely]] {
    self->messages().release(heap);
    heap = nullptr;
    return;
  }
  release_other();
}
inline void delivery::give_back(pe& at, message& m) noexcept {
  delivery d;
  d.load(at, m);
  d.release();
}

}  // namespace orrery::scheduler
