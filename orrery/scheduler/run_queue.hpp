// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/wire/unique_ptr.hpp>

#include <cstddef>
#include <cstdint>

namespace orrery::scheduler {

struct slot;
struct fiber;
struct sink;

/// The order in which a PE runs processes: processes with messages, parked fibers whose wait is
/// over, and results that somebody wants to hear of. Each is in it at most once, so that it is
/// bounded by their number.
///
/// Problem: if everything waited its turn, a process with thousands of others before it would find
/// in no cache any more its message, its object and what it has to do with its sender (Lawlor and
/// Kale 2001 measure what that costs, in their appendix). So a process that gets a message from a
/// method of its PE is `recent`: the newest of these runs first, while all that is warm. Messages
/// from other PEs, fibers whose wait is over, and results, for which somebody waits elsewhere, are
/// in a queue of their own in the order in which they came, and have every (waiting_every + 1)th
/// turn. Every (oldest_every + 1)th of the other turns is the oldest recent one's, which newer ones
/// might hold up for ever. Invariant: a turn of the one kind or the other takes out what has waited
/// longest. So who waits behind n others runs after n + 1 turns of those that wait, and who is
/// recent with n older ones after (n + 1) (oldest_every + 1) turns of the recent ones, at the
/// latest.
class run_queue {
 public:
  /// A slot, a fiber to resume (tagged in the lowest bit), or the sink of a call that has ended
  /// (tagged in the next).
  struct entry {
    std::uintptr_t bits;
    [[nodiscard]] bool is_slot() const noexcept { return (bits & 3) == 0; }
    [[nodiscard]] bool is_fiber() const noexcept { return (bits & 1) != 0; }
    [[nodiscard]] slot* as_slot() const noexcept { return reinterpret_cast<slot*>(bits); }
    [[nodiscard]] fiber* as_fiber() const noexcept { return reinterpret_cast<fiber*>(bits & ~std::uintptr_t{1}); }
    [[nodiscard]] sink* as_sink() const noexcept { return reinterpret_cast<sink*>(bits & ~std::uintptr_t{2}); }
  };

  static constexpr std::uint32_t waiting_every = 8;
  static constexpr std::uint32_t oldest_every = 512;

  [[nodiscard]] bool empty() const noexcept { return recent_.empty() && waiting_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return recent_.size() + waiting_.size(); }
  /// Behind all others that wait.
  void push(slot& s) { waiting_.push(of(s)); }
  void push(fiber& f) { waiting_.push({reinterpret_cast<std::uintptr_t>(&f) | 1}); }
  void push(sink& s) { waiting_.push({reinterpret_cast<std::uintptr_t>(&s) | 2}); }
  /// Before most others: to be called when it was given a message by what the PE runs.
  void push_recent(slot& s) { recent_.push(of(s)); }
  /// Before all others: the next pop() returns it.
  void push_next(sink& s) {
    waiting_.push_first({reinterpret_cast<std::uintptr_t>(&s) | 2});
    until_waiting_ = 0;
  }
  /// A process is to have another place: the sink stands in the old one. False if the process is
  /// not here. Looks through all entries.
  bool replace(const slot& s, sink& by) noexcept {
    const entry there{reinterpret_cast<std::uintptr_t>(&by) | 2};
    return recent_.replace(of(s), there) || waiting_.replace(of(s), there);
  }
  /// The next; the queue must not be empty.
  entry pop() noexcept {
    if (takes_waiting()) {
      until_waiting_ = waiting_every;
      return waiting_.pop_oldest();
    }
    if (until_waiting_ != 0) --until_waiting_;
    if (until_oldest_ != 0) {
      --until_oldest_;
      return recent_.pop_newest();
    }
    until_oldest_ = oldest_every;
    return recent_.pop_oldest();
  }
  /// The next result of pop().
  [[nodiscard]] entry front() const noexcept {
    if (takes_waiting()) return waiting_[0];
    return recent_[until_oldest_ != 0 ? recent_.size() - 1 : 0];
  }
  /// The entry that will most likely be popped after `n` others; n < size().
  [[nodiscard]] entry ahead(std::size_t n) const noexcept {
    const std::size_t recent = recent_.size();
    return n < recent ? recent_[recent - 1 - n] : waiting_[n - recent];
  }

 private:
  [[nodiscard]] bool takes_waiting() const noexcept {
    return recent_.empty() || (until_waiting_ == 0 && !waiting_.empty());
  }
  static entry of(const slot& s) noexcept { return {reinterpret_cast<std::uintptr_t>(&s)}; }

  // A circular array rather than a list through the slots: a push does not touch the line of the
  // process that was pushed before.
  class entries {
   public:
    [[nodiscard]] bool empty() const noexcept { return head_ == tail_; }
    [[nodiscard]] std::size_t size() const noexcept { return tail_ - head_; }
    /// From the oldest on.
    [[nodiscard]] entry operator[](std::size_t n) const noexcept { return items_[(head_ + n) & mask_]; }
    void push(entry e) {
      if (tail_ - head_ > mask_) [[unlikely]]
        grow();
      items_[tail_++ & mask_] = e;
    }
    void push_first(entry e) {
      if (tail_ - head_ > mask_) grow();
      items_[--head_ & mask_] = e;
    }
    bool replace(entry before, entry e) noexcept {
      for (std::size_t i = tail_; i != head_;)
        if (entry& at = items_[--i & mask_]; at.bits == before.bits) {
          at = e;
          return true;
        }
      return false;
    }
    entry pop_oldest() noexcept { return items_[head_++ & mask_]; }
    entry pop_newest() noexcept { return items_[--tail_ & mask_]; }

   private:
    [[gnu::noinline, gnu::cold]] void grow() {
      const std::size_t old = mask_ + 1;
      auto more = wire::make_unique<entry[]>(old * 2);
      for (std::size_t i = head_; i != tail_; ++i) more[i & (old * 2 - 1)] = items_[i & mask_];
      items_ = std::move(more);
      mask_ = old * 2 - 1;
    }

    wire::unique_ptr<entry[]> items_ = wire::make_unique<entry[]>(16);
    std::size_t mask_ = 15;
    std::size_t head_ = 0;
    std::size_t tail_ = 0;
  };

  entries recent_;
  entries waiting_;
  std::uint32_t until_waiting_ = waiting_every;
  std::uint32_t until_oldest_ = oldest_every;
};

}  // namespace orrery::scheduler
