// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/stage_counts.hpp>

#include <atomic>
#include <cstdint>
#include <exception>
#include <string_view>

namespace orrery::scheduler {

struct handler;
class pe;
struct slot;

/// The way of a PE to its end.
///
/// Problem: when the main function has returned, methods are parked in the middle of calls,
/// functions wait in receive, messages lie in mailboxes and rings. All that owns things whose
/// destructors have to run, and no stack may be unwound while another PE still reads an argument
/// that lies on it. So the PEs of a node go through the same stages, none of them further than all
/// others allow (shutdown.cpp).
///
/// Owned by the PE. request(), requested() and, for PEs of the same node, the stage are for any
/// thread; all else is for the PE's. Invariant: the stage only rises.
class shutdown {
 public:
  explicit shutdown(pe& of) noexcept : of_(of) {}
  shutdown(const shutdown&) = delete;
  shutdown& operator=(const shutdown&) = delete;

  void request() noexcept { requested_.store(true, std::memory_order_release); }
  // SYNC: acquire, with request() of this PE after those of later ones (node::stop)
  [[nodiscard]] bool requested() const noexcept { return requested_.load(std::memory_order_acquire); }
  [[nodiscard]] shutdown_stage stage() const noexcept { return stage_.load(std::memory_order_relaxed); }

  /// Lets others run, and throws stopped.
  [[noreturn]] void refuse(const char* what);
  /// The `stopped` of who waits for `about` when the program, or the world that it has joined,
  /// comes to its end.
  [[nodiscard]] std::exception_ptr ending(std::string_view about) const;
  /// The same for a message that is not executed any more.
  [[nodiscard]] std::exception_ptr refusal(const handler* method) const;
  /// Instead of executing what is in the mailbox: fails it.
  void refuse_mailbox(slot& s);
  /// Says on stderr how many one-way messages were refused, if any were. (local_waits does so of
  /// calls whose future was dropped.)
  void say_unexecuted() const noexcept;

  /// Called by the loop since request(). `busy`: there is something to run. True when the loop is
  /// to be left.
  bool wind_down(bool busy);
  /// After the loop, on the thread's own stack.
  void finish() noexcept;

 private:
  void set_stage(shutdown_stage s) noexcept;
  void wake_next() const noexcept;
  void set_stalled(std::int64_t since) noexcept;
  void end_stages() noexcept;
  [[nodiscard]] bool everyone(shutdown_stage s, std::int64_t now) const noexcept;
  void watch_progress(std::uint64_t measure, std::int64_t now) noexcept;
  void cancel_waits();
  void refuse_all(slot& s);
  bool refuse_where_parked();
  void destroy_all();
  void drop_leftovers() noexcept;

  pe& of_;
  std::atomic<bool> requested_{false};
  std::atomic<shutdown_stage> stage_{shutdown_stage::running};
  // when the PE last looked and found no progress for long; 0: it makes some
  std::atomic<std::int64_t> stalled_{0};
  std::int64_t deadline_ = 0;  // of the stage
  std::uint64_t measure_ = 0;  // of its progress
  std::uint64_t unexecuted_ = 0;  // one-way messages
  const handler* first_unexecuted_ = nullptr;
};

}  // namespace orrery::scheduler
