// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace orrery::transport {

/// Something with a time. Events of the same time go by their `order`.
template <class What>
struct timed {
  std::int64_t time;
  std::uint64_t order;
  What what;
  [[nodiscard]] bool operator<(const timed& o) const noexcept {
    return time != o.time ? time < o.time : order < o.order;
  }
};

/// Things with a time, the earliest first.
///
/// A heap of four children: half as deep as one of two, and the children of an entry lie on two or
/// three cache lines.
template <class What>
class time_heap {
 public:
  void add(const timed<What>& added) {
    std::size_t i = heap_.size();
    heap_.push_back(added);
    while (i != 0 && added < heap_[(i - 1) / 4]) {
      heap_[i] = heap_[(i - 1) / 4];
      i = (i - 1) / 4;
    }
    heap_[i] = added;
  }

  [[nodiscard]] bool empty() const noexcept { return heap_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return heap_.size(); }
  /// There must be one.
  [[nodiscard]] const timed<What>& next() const noexcept { return heap_.front(); }
  /// Takes the next one out. There must be one.
  timed<What> take() {
    const timed<What> next = heap_.front();
    const timed<What> last = heap_.back();
    heap_.pop_back();
    const std::size_t n = heap_.size();
    for (std::size_t i = 0; n != 0;) {
      // One of the children of these children will be looked at next: all are asked for, as large
      // heaps are in no near cache.
      for (std::size_t line = 0; line < 16 * sizeof(timed<What>) && 16 * i + 5 < n; line += 64)
        __builtin_prefetch(reinterpret_cast<const std::byte*>(heap_.data() + 16 * i + 5) + line);
      std::size_t least = 4 * i + 1;
      if (least >= n) {
        heap_[i] = last;
        break;
      }
      for (std::size_t c = least + 1; c < n && c < 4 * i + 5; ++c)
        if (heap_[c] < heap_[least]) least = c;
      if (!(heap_[least] < last)) {
        heap_[i] = last;
        break;
      }
      heap_[i] = heap_[least];
      i = least;
    }
    return next;
  }
  /// Where they lie, the first ones first.
  [[nodiscard]] const void* memory() const noexcept { return heap_.data(); }

 private:
  std::vector<timed<What>> heap_;
};

/// The same, which also shows the first `shown_ahead` of them in their order.
///
/// Invariants: first_ is sorted; nothing in rest_ is earlier than what is in first_; rest_ is empty
/// unless first_ is full.
template <class What>
class time_queue {
 public:
  static constexpr std::size_t shown_ahead = 10;

  void add(const timed<What>& added) {
    if (count_ == shown_ahead) {
      if (!(added < first_[count_ - 1])) {
        rest_.add(added);
        return;
      }
      rest_.add(first_[--count_]);
    }
    std::size_t i = count_++;
    for (; i != 0 && added < first_[i - 1]; --i) first_[i] = first_[i - 1];
    first_[i] = added;
  }

  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  /// There must be one.
  [[nodiscard]] const timed<What>& next() const noexcept { return first_[0]; }
  /// The one that comes after `n` others, or null if there is none or it is not shown.
  [[nodiscard]] const What* ahead(std::size_t n) const noexcept { return n < count_ ? &first_[n].what : nullptr; }
  /// Takes the next one out. There must be one.
  timed<What> take() {
    const timed<What> next = first_[0];
    --count_;
    for (std::size_t i = 0; i < count_; ++i) first_[i] = first_[i + 1];
    if (!rest_.empty()) first_[count_++] = rest_.take();
    return next;
  }

 private:
  std::size_t count_ = 0;
  timed<What> first_[shown_ahead]{};
  time_heap<What> rest_;
};

/// In which order things happen that are due at the same time: as they were added, or, if so asked,
/// at random, as follows from the seed.
class event_order {
 public:
  event_order(bool shuffle, std::uint64_t seed) : random_(seed), shuffle_(shuffle) {}
  [[nodiscard]] std::uint64_t next() {
    const std::uint64_t order = shuffle_ ? (random_() & ~mask) | (count_ & mask) : count_;
    ++count_;
    return order;
  }

 private:
  // so that no two orders are the same but by a rare chance
  static constexpr std::uint64_t mask = 0xffff;
  std::mt19937_64 random_;
  std::uint64_t count_ = 0;
  bool shuffle_;
};

}  // namespace orrery::transport
