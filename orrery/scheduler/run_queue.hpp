// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace orrery::scheduler {

struct slot;
struct fiber;
struct sink;

/// What a PE is to run next, first in, first out: processes with messages, parked fibers whose wait is over, and results that
/// somebody wants to hear of. Each is in it at most once, so that it is bounded by their number. A circular array rather than a list through the slots: a
/// push does not touch the line of the process that was pushed before.
class run_queue {
 public:
  /// A slot, a fiber to resume (tagged in the lowest bit), or the sink of a call that has ended (tagged in the next).
  struct entry {
    std::uintptr_t bits;
    [[nodiscard]] bool is_slot() const noexcept { return (bits & 3) == 0; }
    [[nodiscard]] bool is_fiber() const noexcept { return (bits & 1) != 0; }
    [[nodiscard]] slot* as_slot() const noexcept { return reinterpret_cast<slot*>(bits); }
    [[nodiscard]] fiber* as_fiber() const noexcept { return reinterpret_cast<fiber*>(bits & ~std::uintptr_t{1}); }
    [[nodiscard]] sink* as_sink() const noexcept { return reinterpret_cast<sink*>(bits & ~std::uintptr_t{2}); }
  };

  run_queue() : items_(std::make_unique<entry[]>(256)), mask_(255) {}

  [[nodiscard]] bool empty() const noexcept { return head_ == tail_; }
  [[nodiscard]] std::size_t size() const noexcept { return tail_ - head_; }
  void push(slot& s) { push(entry{reinterpret_cast<std::uintptr_t>(&s)}); }
  void push(fiber& f) { push(entry{reinterpret_cast<std::uintptr_t>(&f) | 1}); }
  void push(sink& s) { push(entry{reinterpret_cast<std::uintptr_t>(&s) | 2}); }
  [[nodiscard]] entry front() const noexcept { return items_[head_ & mask_]; }
  entry pop() noexcept { return items_[head_++ & mask_]; }
  /// The entry that will be popped after `n` others; n < size().
  [[nodiscard]] entry ahead(std::size_t n) const noexcept { return items_[(head_ + n) & mask_]; }

 private:
  void push(entry e) {
    if (tail_ - head_ > mask_) [[unlikely]]
      grow();
    items_[tail_++ & mask_] = e;
  }
  void grow() {
    const std::size_t old = mask_ + 1;
    auto more = std::make_unique<entry[]>(old * 2);
    for (std::size_t i = head_; i != tail_; ++i) more[i & (old * 2 - 1)] = items_[i & mask_];
    items_ = std::move(more);
    mask_ = old * 2 - 1;
  }

  std::unique_ptr<entry[]> items_;
  std::size_t mask_;
  std::size_t head_ = 0;
  std::size_t tail_ = 0;
};

}  // namespace orrery::scheduler
