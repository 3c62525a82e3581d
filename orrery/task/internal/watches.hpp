// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/task/task.h>
#include <orrery/process/on_end.hpp>
#include <orrery/wire/address.hpp>

#include <cstdint>
#include <unordered_map>

namespace orrery::task_detail {

/// A number by which a task of C waits for an end. It is told that a process has ended, but not
/// why; so the exception of a function is reported as if nobody waited. Used on the PE's thread.
[[nodiscard]] orrery::detail::watch_key new_watch(scheduler::pe& self);

/// The watches (orrery_watch) that the tasks of one PE have set.
///
/// Problem: a task that watches need not wait, and a task that lives long may be watched by many
/// that come and go. So no stack waits for the end: the PE of the watched one has an entry among
/// its end_watches, and tells this table, which sends the message. A watcher that ends takes its
/// watches back; those of a lost node are dropped there.
///
/// Part of the PE's task_state; used on its thread. Invariant: each watcher in the table is alive,
/// and on this PE.
class task_watches {
 public:
  explicit task_watches(scheduler::pe& of) noexcept : self_(of) {}
  task_watches(const task_watches&) = delete;
  task_watches& operator=(const task_watches&) = delete;
  ~task_watches() = default;

  /// The running process is sent a message with that tag when the task has ended. May park while
  /// the request is sent. Throws usage_error, stopped, std::bad_alloc.
  void add(const address& task, std::uint64_t tag);
  /// A process has ended: nobody is to tell it of others.
  void ended(const address& watcher) noexcept;

 private:
  struct watch {
    address task;
    orrery::detail::watch_key key;
    std::uint64_t tag;
  };
  void told(const address& watcher, std::uint32_t number, orrery_status status) noexcept;

  scheduler::pe& self_;
  std::unordered_multimap<std::uint32_t, watch> all_;  // by the watcher's slot
};

}  // namespace orrery::task_detail
