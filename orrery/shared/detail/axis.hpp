// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace orrery::detail {

/// Indices that follow each other: a loop over them is vectorized as one over numbers is.
template <class Index>
class run_of {
 public:
  class iterator {
   public:
    using value_type = Index;
    using difference_type = std::int64_t;
    iterator() = default;
    explicit iterator(Index at) noexcept : at_(at) {}
    Index operator*() const noexcept { return at_; }
    iterator& operator++() noexcept {
      ++at_;
      return *this;
    }
    iterator operator++(int) noexcept { return iterator(at_++); }
    friend bool operator==(const iterator&, const iterator&) noexcept = default;

   private:
    Index at_ = 0;
  };
  run_of() = default;
  run_of(Index first, Index last) noexcept : first_(first), last_(last) {}
  [[nodiscard]] iterator begin() const noexcept { return iterator(first_); }
  [[nodiscard]] iterator end() const noexcept { return iterator(last_); }
  [[nodiscard]] std::uint64_t size() const noexcept { return static_cast<std::uint64_t>(last_ - first_); }
  [[nodiscard]] bool empty() const noexcept { return first_ == last_; }

 private:
  Index first_ = 0;
  Index last_ = 0;
};
using index_run = run_of<std::uint64_t>;

/// Goes through the indices that one part has of an axis, in ascending order: runs of equal length,
/// with equal gaps between them.
class axis_walk {
 public:
  struct sentinel {};
  class iterator {
   public:
    using value_type = std::uint64_t;
    using difference_type = std::int64_t;
    iterator() = default;
    explicit iterator(const axis_walk& w) noexcept
        : at_(w.first_), left_(w.count_), run_left_(w.first_run_), run_(w.run_), gap_(w.gap_) {}
    std::uint64_t operator*() const noexcept { return at_; }
    iterator& operator++() noexcept {
      ++at_;
      --left_;
      if (--run_left_ == 0) {
        at_ += gap_;
        run_left_ = run_;
      }
      return *this;
    }
    iterator operator++(int) noexcept {
      iterator old = *this;
      ++*this;
      return old;
    }
    friend bool operator==(const iterator& i, sentinel) noexcept { return i.left_ == 0; }
    friend bool operator==(const iterator& a, const iterator& b) noexcept { return a.left_ == b.left_; }

   private:
    std::uint64_t at_ = 0;
    std::uint64_t left_ = 0;
    std::uint64_t run_left_ = 0;
    std::uint64_t run_ = 0;
    std::uint64_t gap_ = 0;
  };

  axis_walk() = default;
  /// `count` indices from `first` on: `first_run` of them follow each other, then `gap` are left
  /// out, then come runs of `run`.
  axis_walk(std::uint64_t first, std::uint64_t count, std::uint64_t first_run, std::uint64_t run,
            std::uint64_t gap) noexcept
      : first_(first), count_(count), first_run_(first_run), run_(run), gap_(gap) {}

  [[nodiscard]] iterator begin() const noexcept { return iterator(*this); }
  [[nodiscard]] sentinel end() const noexcept { return {}; }
  [[nodiscard]] std::uint64_t size() const noexcept { return count_; }
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  /// Calls f(index_run) for each run of indices that follow each other: inside, a loop is as fast
  /// as over a plain vector.
  template <class F>
  void for_each_run(F f) const {
    std::uint64_t first = first_;
    std::uint64_t run = first_run_;
    for (std::uint64_t left = count_; left != 0; run = run_) {
      if (run > left) run = left;
      f(index_run(first, first + run));
      first += run + gap_;
      left -= run;
    }
  }
  /// The least index; undefined if there is none.
  [[nodiscard]] std::uint64_t front() const noexcept { return first_; }

 private:
  std::uint64_t first_ = 0;
  std::uint64_t count_ = 0;
  std::uint64_t first_run_ = 0;
  std::uint64_t run_ = 0;
  std::uint64_t gap_ = 0;
};

/// How the indices 0 to n - 1 of one dimension are dealt out to parts, by arithmetic: each index
/// has a part and a number within that part, which ascends with the index.
///
/// A value; it does not park and throws only where a function says so.
class axis {
 public:
  enum class kind : std::uint8_t {
    blocks,  ///< one run for each part, as equal as can be: the first parts have one more
    dealt,  ///< runs of `block` indices, given to the parts in turn
    bounded,  ///< one run for each part, whose ends are listed
  };
  struct place {
    std::uint32_t part;
    std::uint64_t local;
  };

  axis() = default;
  [[nodiscard]] static axis in_blocks(std::uint64_t n, std::uint32_t parts);
  /// `block` is at least 1.
  [[nodiscard]] static axis dealt_out(std::uint64_t n, std::uint32_t parts, std::uint64_t block);
  /// The parts end before these indices, which ascend; the last is n.
  [[nodiscard]] static axis with_ends(std::vector<std::uint64_t> ends);

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] std::uint32_t parts() const noexcept { return parts_; }
  /// The indices of each part follow each other, and those of part p + 1 follow those of part p.
  [[nodiscard]] bool contiguous() const noexcept { return kind_ != kind::dealt || parts_ == 1; }
  /// `i` is below size().
  [[nodiscard]] place find(std::uint64_t i) const noexcept;
  /// How many indices of the part are below `i`, which is at most size().
  [[nodiscard]] std::uint64_t below(std::uint32_t part, std::uint64_t i) const noexcept;
  [[nodiscard]] std::uint64_t count(std::uint32_t part) const noexcept { return below(part, size_); }
  /// The inverse of find.
  [[nodiscard]] std::uint64_t index(std::uint32_t part, std::uint64_t local) const noexcept;
  /// The indices with the numbers from `first` to `last` - 1 within the part.
  [[nodiscard]] axis_walk walk(std::uint32_t part, std::uint64_t first, std::uint64_t last) const noexcept;
  /// For indices that are dealt out: the length of their runs.
  [[nodiscard]] std::uint64_t block() const noexcept { return block_; }
  /// False if it came from a message and makes no sense.
  [[nodiscard]] bool valid() const noexcept;

  friend bool operator==(const axis&, const axis&) = default;

  template <class A>
  void serialize(A& a) {
    a & kind_ & parts_ & size_ & block_ & ends_;
  }

 private:
  kind kind_ = kind::blocks;
  std::uint32_t parts_ = 1;
  std::uint64_t size_ = 0;
  std::uint64_t block_ = 1;  // dealt: indices of a run; blocks: of each part at least
  std::vector<std::uint64_t> ends_;  // bounded
};

}  // namespace orrery::detail
