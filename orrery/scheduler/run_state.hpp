// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/activation.hpp>
#include <orrery/scheduler/counters.hpp>
#include <orrery/scheduler/fiber.hpp>
#include <orrery/scheduler/happens_before.hpp>
#include <orrery/scheduler/jump_prefetcher.hpp>
#include <orrery/scheduler/message.hpp>
#include <orrery/scheduler/process_table.hpp>
#include <orrery/scheduler/run_queue.hpp>
#include <orrery/scheduler/sink.hpp>
#include <orrery/scheduler/slot.hpp>
#include <orrery/wire/address.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstddef>
#include <cstdint>

namespace orrery::scheduler {

class urgent_queue;

/// The members that a PE touches for every message: its processes and their mailboxes, what runs,
/// and what is to run next.
///
/// Problem: a message within a PE costs 11 ns. Each more cache line that it touches, and each more
/// pointer that it follows, can be measured. So all of that lies together at the beginning of the
/// PE, in the order of its use; this class is the base of `pe`, and what it does is inline. The
/// parts of the PE do what is rare.
///
/// Only a base of `pe`; used by the PE's thread. Invariants: (1) exactly one fiber of the PE runs;
/// (2) a slot is in the run queue iff its state is `scheduled`; (3) an `idle` slot has an empty
/// mailbox; (4) a slot with depth > 0 is `running`, unless its class is reentrant or its methods
/// wait for conditions.
class run_state {
 public:
  run_state(const run_state&) = delete;
  run_state& operator=(const run_state&) = delete;

  [[nodiscard]] std::uint32_t id() const noexcept { return processes_.pe(); }
  [[nodiscard]] counters& count() noexcept { return count_; }
  /// True while nothing may be waited for any more, because the runtime shuts down: throw
  /// shutdown::refuse.
  [[nodiscard]] bool refusing() const noexcept { return refusing_; }

  // --- processes ---------------------------------------------------------------------------------
  [[nodiscard]] const process_table& processes() const noexcept { return processes_; }
  /// The process behind an address of this PE, or null if it is gone.
  [[nodiscard]] slot* find(std::uint32_t index, std::uint32_t generation) const noexcept {
    return processes_.find(index, generation);
  }
  [[nodiscard]] address address_of(const slot& s) const noexcept { return processes_.address_of(s); }
  /// A fresh slot in state `running`, without an object. Throws std::bad_alloc when the table is
  /// full.
  [[nodiscard]] slot& allocate_slot() {
    if (slot* s = processes_.take_free(); s != nullptr) [[likely]] {
      ++count_.processes;
      ++count_.spawned;
      return *s;
    }
    return allocate_new_slot();
  }
  /// Ends a process that has no active method: fails what waits in its mailbox, and gives the slot
  /// back. Does not touch the object.
  void free_slot(slot& s) noexcept;
  /// Runs the destructor of a process that has no active method, and ends it.
  void destroy(slot& s);
  /// Runs the destructor, after the names of the process were cleared. May park.
  void end_object(slot& s) noexcept;

  // --- mailboxes ---------------------------------------------------------------------------------
  /// The memory of messages.
  [[nodiscard]] message_pool& messages() noexcept { return pool_; }
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

  /// Appends a message of another level than the normal one, as urgent_queue and
  /// background_message say.
  [[gnu::cold]] void push_at(wire::record_kind level, slot& s, message* m);

  // --- what is next ------------------------------------------------------------------------------
  /// After a method: what is next for the process.
  void settle(slot& s) {
    if (s.has_messages()) {
      s.state = process_state::scheduled;
      if (urgent_ != nullptr) [[unlikely]] {
        schedule_by_level(s);
      } else {
        runnable_.push(s);
      }
    } else {
      s.state = process_state::idle;
    }
  }
  /// Puts a process that was not runnable into the run queue.
  void make_runnable(slot& s) {
    s.state = process_state::scheduled;
    runnable_.push(s);
  }
  /// The fiber's wait is over.
  void ready(fiber& f) {
    if (f.queued) return;  // a result and a time-out may come at once
    f.queued = 1;
    runnable_.push(f);
  }
  /// The same for all of a list, of which some may wait for room (room_wait).
  void ready_all(fiber* list);
  /// The sink's state has left `waiting`: wakes who waits.
  inline void complete(sink& s);
  /// Calls s.on_done from the loop, as a process of its own: it may park.
  void run_later(sink& s) { runnable_.push(s); }
  [[nodiscard]] bool has_runnable() const noexcept { return !runnable_.empty(); }
  /// The loop polls before it runs more than `entries` of the queue.
  void poll_within(std::int32_t entries) noexcept {
    if (ticks_ > entries) ticks_ = entries;
  }

  // --- what runs ---------------------------------------------------------------------------------
  [[nodiscard]] fiber* running() const noexcept { return current_; }
  [[nodiscard]] activation* active() const noexcept { return active_; }
  [[nodiscard]] address self() const noexcept {
    return active_ != nullptr ? address_of(*active_->process) : address{id(), wire::no_slot, 0};
  }
  /// Throws usage_error unless the caller is a process (and may park).
  void require_process() const;
  /// True if there is stack left to run another method inline.
  [[nodiscard]] bool room_on_stack() const noexcept {
    return static_cast<const std::byte*>(__builtin_frame_address(0)) > current_->limit;
  }
  void push_activation(activation& a) noexcept {
    a.below = active_;
    active_ = &a;
    if (watch_ != nullptr) [[unlikely]]
      watch_begin(a);
  }
  void pop_activation(activation& a) noexcept {
    if (watch_ != nullptr) [[unlikely]]
      watch_end(a);
    active_ = a.below;
  }

  // --- what happens before what ------------------------------------------------------------------
  [[nodiscard]] happens_before order() const noexcept { return happens_before(watch_); }

 protected:
  run_state(std::uint32_t pe, std::uint32_t most_processes, bool in_huge_pages)
      : processes_(pe, most_processes, in_huge_pages) {}
  ~run_state() = default;

  static constexpr std::size_t fetched_ahead = 6;  // runnable processes
  /// Asks for the lines of those that will run soon, while others run. There must be more than
  /// `fetched_ahead`.
  void fetch_ahead() const noexcept;
  [[gnu::cold]] void watch_begin(const activation& a) noexcept;
  [[gnu::cold]] void watch_end(const activation& a) noexcept;
  [[gnu::cold]] void watch_complete(sink& s) noexcept;

  process_table processes_;
  fiber* current_ = nullptr;
  activation* active_ = nullptr;
  run_queue runnable_;
  std::int32_t ticks_ = 0;
  bool refusing_ = false;
  bool queueing_ = false;  // messages go into mailboxes even if their process is idle
  jump_prefetcher prefetcher_;
  message_pool pool_;
  counters count_;
  pe_watch* watch_ = nullptr;  // null: nobody is told of what it does
  struct end_urgent {
    void operator()(urgent_queue* q) const noexcept;
  };
  wire::unique_ptr<urgent_queue, end_urgent> urgent_;  // made with the first urgent message

 private:
  void push_urgent(slot& s, message* m);
  void push_background(slot& s, message* m);
  [[gnu::cold]] void schedule_by_level(slot& s);
  [[gnu::cold]] void suspect(slot& s);
  slot& allocate_new_slot();
  [[nodiscard]] class pe& whole() noexcept;
};

}  // namespace orrery::scheduler
