// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/order.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>

namespace orrery::detail {

/// Messages that wait at the home of an element that keeps moving.
///
/// Problem: an element that moves in each method takes the messages in its mailbox along each time.
/// So each message makes as many hops as there are messages before it, and others chase the element
/// through the world.
///
/// A message that has followed its element for some hops goes to the home of the index, and waits
/// here. The home sends one to where the element has arrived last. When that one is executed there,
/// or has come back as the element has left before, the next one has its turn. An element that
/// stands still gets twice as many at once each time.
///
/// One for each index with such messages; owned by the part of the array on the home PE, used on
/// its thread. Invariants: (1) at most `allowed_` are under way, or none waits; (2) those that have
/// come back wait before all others; (3) messages of one stream (order.hpp) are in their order.
class home_queue {
 public:
  struct waiting {
    scheduler::message* what = nullptr;
    order_tag tag;
  };

  /// Takes over a message. `again`: it was at the element, or under way from here.
  void add(scheduler::message* m, order_tag tag, bool again);
  /// The message whose turn it is, which is under way then; null if it is nobody's.
  [[nodiscard]] scheduler::message* next() noexcept {
    if (all_.empty() || under_way_ >= allowed_) return nullptr;
    ++under_way_;
    return pop();
  }
  /// Any message, when the element has ended.
  [[nodiscard]] scheduler::message* take() noexcept { return all_.empty() ? nullptr : pop(); }
  /// One that was under way is executed.
  void turn_over() noexcept {
    came_back();
    if (rests_ && under_way_ == 0) allowed_ = std::min(allowed_ * 2, most_under_way);
    rests_ = true;
  }
  /// One that was under way is here again, or is at the element and waits there for others.
  void came_back() noexcept {
    if (under_way_ != 0) --under_way_;
  }
  /// The element has come to another PE.
  void moved() noexcept {
    allowed_ = 1;
    rests_ = false;
  }
  /// Nothing waits, and nothing is under way.
  [[nodiscard]] bool is_over() const noexcept { return all_.empty() && under_way_ == 0; }

  /// Messages are being sent from here.
  bool sends = false;

 private:
  static constexpr std::uint32_t most_under_way = 64;

  scheduler::message* pop() noexcept {
    scheduler::message* m = all_.front().what;
    all_.pop_front();
    if (again_ != 0) --again_;
    return m;
  }

  std::deque<waiting> all_;
  std::size_t again_ = 0;  // of the first, have been sent before
  std::uint32_t under_way_ = 0;
  std::uint32_t allowed_ = 1;
  bool rests_ = false;  // it has executed one and did not move since
};

}  // namespace orrery::detail
