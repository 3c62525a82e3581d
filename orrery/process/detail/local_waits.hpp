// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/detail/here_pe.hpp>
#include <orrery/process/end_watches.hpp>
#include <orrery/scheduler/layer_state.hpp>
#include <orrery/scheduler/wait_watcher.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstdint>
#include <string>

namespace orrery::detail {

struct spread_map;

/// Something that somebody waits for and that no call stands for: a promise, an answer that comes
/// later, a condition. In the list of its PE while it lives, or until it is over. A derived class
/// says how the wait ends with the runtime, and what a report calls it.
struct local_wait {
  local_wait* next = this;
  local_wait* previous = this;
  /// The runtime shuts down, and it was taken out of the list: who waits is to get `stopped`. Null:
  /// it ends by itself. Must not park.
  void (*cancel)(pe&, local_wait&) noexcept = nullptr;
  /// A line of the report of a dead world, which begins with two blanks; empty: nothing to say.
  std::string (*describe)(const pe&, const local_wait&) = nullptr;

  local_wait() = default;
  local_wait(const local_wait&) = delete;
  local_wait& operator=(const local_wait&) = delete;
  ~local_wait() { leave(); }
  /// It is in no list any more.
  void leave() noexcept {
    next->previous = previous;
    previous->next = next;
    next = previous = this;
  }
};

/// The local waits of a PE.
///
/// Problem: the scheduler knows who waits for a call, and ends calls when the runtime does. It
/// knows nothing of who is to keep a promise. So those that may wait for ever are in a list, which
/// is told of the end, and speaks in the report of a dead world.
///
/// Owned by its PE as the process layer's state, which also has those that are to be told of ends,
/// and the values of spread(); used on the PE's thread. Invariant: each in the list is on this PE.
class local_waits final : public scheduler::layer_state, scheduler::wait_watcher {
 public:
  explicit local_waits(pe& of);
  ~local_waits() override;
  /// Those of a PE, made at the first call. Throws std::bad_alloc.
  [[nodiscard]] static local_waits& of(pe& self) {
    const auto& state = self.layers().of(scheduler::upper_layer::process);
    if (state == nullptr) [[unlikely]]
      make(self);
    return static_cast<local_waits&>(*state);
  }

  void add(local_wait& w) noexcept {
    w.previous = list_.previous;
    w.next = &list_;
    w.previous->next = &w;
    list_.previous = &w;
  }
  /// The first in the list for which f is true; null: there is none.
  template <class F>
  [[nodiscard]] const local_wait* find(F f) const {
    for (const local_wait* w = list_.next; w != &list_; w = w->next)
      if (f(*w)) return w;
    return nullptr;
  }
  [[nodiscard]] end_watches& ends() noexcept { return ends_; }
  /// The values of spread() that this PE knows.
  [[nodiscard]] spread_map& spread_values() noexcept { return *spread_values_; }
  /// The number of a value that is spread from here. No other run gives it.
  [[nodiscard]] std::uint64_t next_spread() noexcept { return ++spreads_; }
  void process_ended(const address& gone) noexcept override { ends_.ended(gone); }
  /// The program has ended before a call that was made here, and nobody waited for its result. How
  /// many there were is said on stderr at the end.
  void count_dropped_call(const scheduler::handler& method) noexcept {
    if (dropped_calls_++ == 0) first_dropped_ = &method;
  }

 private:
  [[gnu::noinline]] static void make(pe& self);
  void pes_lost(pe& self) noexcept override { drop_watches_of_lost(self); }
  void cancel_waits(pe& self) noexcept override;
  [[nodiscard]] std::string explain_waits() const override;
  void say_dropped() const noexcept;
  [[nodiscard]] scheduler::awaited_answer find_answer(std::uint32_t caller_pe, std::uint64_t call,
                                                      bool hidden) const noexcept override;

  pe& self_;
  local_wait list_;  // a circle
  end_watches ends_{self_};
  const wire::unique_ptr<spread_map> spread_values_;
  std::uint64_t spreads_;  // the last number given; they begin with the time of day in ns
  std::uint64_t dropped_calls_ = 0;
  const scheduler::handler* first_dropped_ = nullptr;
};

}  // namespace orrery::detail
