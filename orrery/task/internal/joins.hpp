// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/wait_watcher.hpp>
#include <orrery/wire/address.hpp>

#include <cstdint>
#include <unordered_map>

namespace orrery::scheduler {
struct fiber;
class pe;
struct slot;
}  // namespace orrery::scheduler

namespace orrery::task_detail {

/// The waits for the ends of tasks of one PE.
///
/// Problem: a task that ends has to tell those who wait, and most tasks are waited for by nobody.
/// So the PE has a table of the slots that somebody waits for, and their slots are `watched`: the
/// scheduler tells of their ends, be they tasks of C or processes of C++. Each joiner waits on this
/// PE: a remote function that `orrery_join` calls. Part of the PE's task_state; used on its thread.
/// Invariant: each joiner in the table is parked in `wait`.
class task_joins final : scheduler::wait_watcher {
 public:
  explicit task_joins(scheduler::pe& of);
  task_joins(const task_joins&) = delete;
  task_joins& operator=(const task_joins&) = delete;
  ~task_joins() override;

  /// Parks the caller until the process, which is alive and on this PE, has ended. Throws stopped.
  void wait(const address& task);
  /// It has ended.
  void ended(const address& task) noexcept;

 private:
  struct joiner {
    scheduler::fiber* waiter = nullptr;
    bool done = false;
    bool stopped = false;
    joiner* next = nullptr;
  };
  void pes_lost(scheduler::pe&) noexcept override {}
  void cancel_waits(scheduler::pe&) noexcept override;
  void wake(joiner* first, bool stopped) noexcept;

  scheduler::pe& self_;
  std::unordered_map<std::uint32_t, joiner*> waiting_;  // by slot
};

}  // namespace orrery::task_detail
