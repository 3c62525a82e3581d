// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/future.hpp>

#include <cstdint>
#include <deque>
#include <unordered_map>

// Waiting of the methods of one reentrant process for each other. All of it is used on the PE of
// that process only.
namespace orrery::storage::internal {

/// Methods that wait for their turn, oldest first.
class wait_queue {
 public:
  /// Parks until another method wakes this one. Throws stopped.
  void wait() {
    auto state = orrery::detail::future_access<void>::make_local(orrery::detail::here_pe());
    waiting_.push_back(orrery::detail::future_access<void>::make_hold(state));
    orrery::detail::future_access<void>::wrap(std::move(state)).get();
  }
  /// Wakes the oldest; false if nobody waits.
  bool wake_one() {
    if (waiting_.empty()) return false;
    auto state = std::move(waiting_.front());
    waiting_.pop_front();
    orrery::detail::resolve<void>(orrery::detail::here_pe(), state.release(), [] {});
    return true;
  }
  void wake_all() {
    for (std::size_t n = waiting_.size(); n > 0; --n) (void)wake_one();
  }
  [[nodiscard]] bool empty() const noexcept { return waiting_.empty(); }

 private:
  std::deque<orrery::detail::future_access<void>::owner> waiting_;
};

/// Lets a number of methods through at once, the others in the order in which they came.
class gate {
 public:
  explicit gate(std::uint32_t room) noexcept : room_(room) {}

  class pass {
   public:
    explicit pass(gate& g) : gate_(g) {
      if (gate_.room_ > 0) {
        --gate_.room_;
      } else {
        gate_.queue_.wait();  // who leaves hands its place over
      }
    }
    pass(const pass&) = delete;
    pass& operator=(const pass&) = delete;
    ~pass() {
      if (!gate_.queue_.wake_one()) ++gate_.room_;
    }

   private:
    gate& gate_;
  };

 private:
  std::uint32_t room_;
  wait_queue queue_;
};

/// For each page, any number of readers or one writer, in the order in which they came; so what a
/// client started first is done first, though the methods of the device overlap. An entry is there
/// only while a page is in use.
class page_locks {
 public:
  class hold {
   public:
    hold(page_locks& locks, std::uint64_t page, bool exclusive) : locks_(locks), page_(page), exclusive_(exclusive) {
      entry& e = locks_.entries_[page_];
      if (e.waiting.empty() && !e.writer && (!exclusive_ || e.readers == 0)) {
        e.enter(exclusive_);
        return;
      }
      auto state = orrery::detail::future_access<void>::make_local(orrery::detail::here_pe());
      e.waiting.push_back({exclusive_, orrery::detail::future_access<void>::make_hold(state)});
      orrery::detail::future_access<void>::wrap(std::move(state)).get();  // let in by who leaves
    }
    hold(const hold&) = delete;
    hold& operator=(const hold&) = delete;
    ~hold() { locks_.leave(page_, exclusive_); }

   private:
    page_locks& locks_;
    std::uint64_t page_;
    bool exclusive_;
  };

 private:
  struct waiter {
    bool exclusive;
    orrery::detail::future_access<void>::owner state;
  };
  struct entry {
    std::uint32_t readers = 0;
    bool writer = false;
    std::deque<waiter> waiting;
    void enter(bool exclusive) noexcept { exclusive ? void(writer = true) : void(++readers); }
  };

  void leave(std::uint64_t page, bool exclusive) {
    const auto at = entries_.find(page);
    entry& e = at->second;
    exclusive ? void(e.writer = false) : void(--e.readers);
    while (!e.waiting.empty() && !e.writer && (!e.waiting.front().exclusive || e.readers == 0)) {
      waiter w = std::move(e.waiting.front());
      e.waiting.pop_front();
      e.enter(w.exclusive);
      orrery::detail::resolve<void>(orrery::detail::here_pe(), w.state.release(), [] {});
    }
    if (e.readers == 0 && !e.writer && e.waiting.empty()) entries_.erase(at);
  }

  std::unordered_map<std::uint64_t, entry> entries_;
};

}  // namespace orrery::storage::internal
