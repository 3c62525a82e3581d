// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace orrery::transport {

/// Things with a time, the earliest first; what has the same time goes by its `order`.
///
/// A heap of four children: half as deep as one of two, and the children of an entry lie on two cache lines.
template <class What>
class time_heap {
 public:
  void add(std::int64_t time_ns, std::uint64_t order, const What& what) {
    std::size_t i = heap_.size();
    heap_.push_back({time_ns, order, what});
    const entry added = heap_[i];
    while (i != 0 && added < heap_[(i - 1) / 4]) {
      heap_[i] = heap_[(i - 1) / 4];
      i = (i - 1) / 4;
    }
    heap_[i] = added;
  }

  [[nodiscard]] bool empty() const noexcept { return heap_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return heap_.size(); }
  /// When the next is due. There must be one.
  [[nodiscard]] std::int64_t next_ns() const noexcept { return heap_.front().time; }
  [[nodiscard]] const What& next() const noexcept { return heap_.front().what; }
  /// Takes the next one out: when it is due, and what it is. There must be one.
  std::pair<std::int64_t, What> take() {
    const std::pair<std::int64_t, What> next{heap_.front().time, heap_.front().what};
    const entry last = heap_.back();
    heap_.pop_back();
    const std::size_t n = heap_.size();
    for (std::size_t i = 0; n != 0;) {
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
  /// Calls f for those of whom one comes after the next, at most four.
  template <class F>
  void for_each_second(F f) const {
    for (std::size_t i = 1; i < heap_.size() && i < 5; ++i) f(heap_[i].what);
  }

 private:
  struct entry {
    std::int64_t time;
    std::uint64_t order;
    What what;
    bool operator<(const entry& o) const noexcept { return time != o.time ? time < o.time : order < o.order; }
  };
  std::vector<entry> heap_;
};

/// In which order things happen that are due at the same time: as they were added, or, if so asked, at random, as follows from the seed.
class event_order {
 public:
  event_order(bool shuffle, std::uint64_t seed) : random_(seed), shuffle_(shuffle) {}
  [[nodiscard]] std::uint64_t next() {
    const std::uint64_t order = shuffle_ ? (random_() & ~mask) | (count_ & mask) : count_;
    ++count_;
    return order;
  }

 private:
  static constexpr std::uint64_t mask = 0xffff;  // so that no two orders are the same but by a rare chance
  std::mt19937_64 random_;
  std::uint64_t count_ = 0;
  bool shuffle_;
};

}  // namespace orrery::transport
