// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace orrery::detail {

/// The PEs that an array is on: those of its program that were there when it was made. Their place
/// in it is their *rank*.
///
/// Problem: PE numbers are never used again. Where programs come and go, the numbers of those that
/// are there have gaps; homes and the spanning tree count without. A program that joins later, or
/// leaves and had no part of the array, does not concern it.
///
/// A value; never changes; the same on all PEs of the array. Where no number is missing, which is
/// the rule, it holds no list.
class array_pes {
 public:
  static constexpr std::uint32_t none = ~0U;

  array_pes() = default;
  /// All below that number.
  explicit array_pes(std::uint32_t count) noexcept : count_(count) {}
  /// These, in ascending order.
  explicit array_pes(std::vector<std::uint32_t> all) : count_(static_cast<std::uint32_t>(all.size())) {
    if (!all.empty() && all.back() >= count_) list_ = std::move(all);
  }

  [[nodiscard]] std::uint32_t count() const noexcept { return count_; }
  /// The PE of that rank, which is below count().
  [[nodiscard]] std::uint32_t at(std::uint32_t rank) const noexcept { return list_.empty() ? rank : list_[rank]; }
  /// The rank of a PE; none if the array is not on it.
  [[nodiscard]] std::uint32_t rank_of(std::uint32_t pe) const noexcept {
    if (list_.empty()) return pe < count_ ? pe : none;
    return rank_in_list(pe);
  }
  [[nodiscard]] bool contains(std::uint32_t pe) const noexcept { return rank_of(pe) != none; }

  template <class A>
  void serialize(A& a) {
    a & count_ & list_;
    // whatever was written
    if constexpr (A::is_loading::value)
      if (!list_.empty()) count_ = static_cast<std::uint32_t>(list_.size());
  }

 private:
  [[nodiscard]] std::uint32_t rank_in_list(std::uint32_t pe) const noexcept;

  std::uint32_t count_ = 0;
  std::vector<std::uint32_t> list_;  // empty: rank and number are the same
};

}  // namespace orrery::detail
