// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/slot.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace orrery::scheduler {

struct layer_state;

/// Work that a PE does when it has nothing else to do.
struct idle_task {
  idle_task() = default;
  idle_task(const idle_task&) = delete;
  idle_task& operator=(const idle_task&) = delete;
  virtual ~idle_task();
  virtual void run() = 0;

  wire::unique_ptr<idle_task> next;
  const slot* by = nullptr;  ///< the process that gave it to the PE
  std::span<const std::byte> memory;  ///< what it will need; perhaps freed meanwhile
  /// Whose work it is, by the number that layer_state::begin_work gave.
  layer_state* counted_by = nullptr;
  std::uint64_t counted_as = 0;
};

/// The work that waits until its PE is idle, in the order in which it came. As everything else runs
/// before it, it is known long before it runs, and what it needs is fetched into the cache a few
/// lines at a time: the processor goes on with what it does meanwhile, which a fetch of all at once
/// would stop, as so many lines can be on their way. Only of the PE's thread.
class idle_queue {
 public:
  static constexpr std::size_t lines_at_once = 16;
  static constexpr std::size_t tasks_ahead = 2;  ///< that are fetched
  /// Limit of a task's memory: the cache is to keep what others need.
  static constexpr std::size_t most_bytes = std::size_t{64} << 10;

  idle_queue() = default;
  idle_queue(const idle_queue&) = delete;
  idle_queue& operator=(const idle_queue&) = delete;
  ~idle_queue() { clear(); }

  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  void push(wire::unique_ptr<idle_task> t) noexcept {
    idle_task* const added = t.get();
    (last_ != nullptr ? last_->next : first_) = std::move(t);
    last_ = added;
    if (fetching_ == nullptr) fetching_ = added;
  }
  /// The oldest; there must be one.
  [[nodiscard]] wire::unique_ptr<idle_task> pop() noexcept {
    if (fetching_ == first_.get()) {
      begin_to_fetch(first_->next.get());
    } else {
      --fetched_;
    }
    wire::unique_ptr<idle_task> t = std::move(first_);
    first_ = std::move(t->next);
    if (first_ == nullptr) last_ = nullptr;
    return t;
  }
  /// One after the other: a chain of destructors would be as deep as the queue is long.
  void clear() noexcept {
    while (!empty()) (void)pop();
  }

  [[nodiscard]] bool wants_memory() const noexcept { return fetching_ != nullptr && fetched_ < tasks_ahead; }
  /// Asks for the next lines of the tasks that come first. Only if wants_memory().
  void fetch() noexcept;

 private:
  static constexpr std::size_t line = 64;

  void begin_to_fetch(const idle_task* t) noexcept {
    fetching_ = t;
    step_ = 0;
  }

  wire::unique_ptr<idle_task> first_;
  idle_task* last_ = nullptr;
  const idle_task* fetching_ = nullptr;  // null: all have been
  std::size_t step_ = 0;  // of fetching_
  std::size_t fetched_ = 0;  // tasks before fetching_
};

}  // namespace orrery::scheduler
