// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/vector_clock.hpp>
#include <orrery/shared/detail/shared_id.hpp>
#include <orrery/wire/containers.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace orrery::detail {

/// How elements are accessed, as far as others mind.
enum class access_kind : std::uint8_t {
  read,  ///< a copy of many, or a scope in which they may be read
  element_read,  ///< one element, which is whole, by default; or in a scope of read-mostly
  write,
  update,  ///< fetch_add and the like: any number may do so at once
};

/// Two accesses to the same element by different processes need an order between them.
[[nodiscard]] constexpr bool need_order(access_kind a, access_kind b) noexcept {
  if (a == access_kind::write || b == access_kind::write) return true;
  return (a == access_kind::update && b == access_kind::read) || (a == access_kind::read && b == access_kind::update);
}

/// Elements by their numbers, row after row: ranges that ascend and do not touch.
class element_ranges {
 public:
  struct range {
    std::uint64_t first;
    std::uint64_t last;  ///< behind it
  };
  /// In any order; cheap where one follows the other.
  void add(std::uint64_t first, std::uint64_t last) {
    if (first == last) return;
    // A line of a loop may go along several rows at once.
    for (std::size_t i = all_.size(); i != 0 && all_.size() - i < 4; --i) {
      range& r = all_[i - 1];
      if (first < r.first || first > r.last) continue;
      if (last > r.last) r.last = last;
      return;
    }
    all_.push_back({first, last});
    if (all_.size() >= tidy_at_) tidy();
  }
  /// Puts them in order. To be called before what follows.
  void tidy();
  [[nodiscard]] bool empty() const noexcept { return all_.empty(); }
  [[nodiscard]] std::size_t count() const noexcept { return all_.size(); }
  [[nodiscard]] bool has(std::uint64_t number) const noexcept {
    return std::ranges::any_of(all_, [&](const range& r) { return r.first <= number && number < r.last; });
  }
  /// It has this element, and no other one.
  [[nodiscard]] bool is_only(std::uint64_t number) const noexcept {
    return all_.size() == 1 && all_[0].first == number && all_[0].last == number + 1;
  }
  void add(const element_ranges& more) { all_.insert(all_.end(), more.all_.begin(), more.all_.end()); }
  /// The first that both have elements of.
  [[nodiscard]] std::optional<range> first_common(const element_ranges& other) const noexcept;

  template <class A>
  void serialize(A& a) {
    a & all_;
  }

 private:
  std::vector<range> all_;
  std::size_t tidy_at_ = 4096;
};

/// Accesses of one process to one object from one place in the source, with what the checker needs
/// to know whether they are ordered with others: all that came before they began, and the strand
/// and time with which they ended.
struct access_record {
  access_kind kind = access_kind::read;
  bool view = false;  ///< memory itself was shown: also its own process must not write it meanwhile
  std::uint32_t pe = 0;
  std::uint64_t strand = 0;
  std::uint64_t time = 0;
  scheduler::vector_clock before;
  element_ranges elements;
  std::string where;  ///< "mm2.cpp:41 (read_cache)"

  /// This has ended before the other one began.
  [[nodiscard]] bool is_before(const access_record& other) const noexcept { return other.before.of(strand) >= time; }

  template <class A>
  void serialize(A& a) {
    a & kind & view & pe & strand & time & before & elements & where;
  }
};

}  // namespace orrery::detail
