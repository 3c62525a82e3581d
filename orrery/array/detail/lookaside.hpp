// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/index.hpp>
#include <orrery/scheduler/slot.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

namespace orrery::detail {

/// The elements of a PE that messages went to lately: one entry for some bits of an index, in front
/// of the part's table. Most messages between elements of a PE find their element with one
/// multiplication instead of a hash and a walk through the table. For indices that are numbers; of
/// others it has none. Elements that follow each other in the last coordinate have entries that
/// follow each other, and rows of a dense block are apart by the golden section of the entries, so
/// that with two entries for each element few rows meet; elements that share an entry take it from
/// each other, and are found in the table as before. An entry has the index itself: of an element
/// that is in no cache nothing but its process is touched. Invariant: an entry is empty or an
/// element that is in the part's table as one of this PE, so who takes one out of that table calls
/// forget() first. Only of the PE's thread.
template <class Index, class Process = scheduler::slot>
class lookaside {
 public:
  static constexpr bool possible = std::is_integral_v<Index> || std::is_enum_v<Index> || is_coordinates<Index>;
  static constexpr std::size_t fewest = 32;  ///< elements, for which it is worth its memory
  static constexpr std::size_t most = 1 << 14;  ///< entries: what the caches of a processor hold

  /// The element's process; null: the table knows.
  [[nodiscard]] Process* find(const Index& i) const noexcept {
    if constexpr (possible)
      if (entries_ != nullptr)
        if (const entry& e = entries_[at(i)]; e.process != nullptr && index_equal<Index>{}(e.index, i))
          return e.process;
    return nullptr;
  }
  /// An element was found in the table, which has so many of this PE.
  void note(const Index& i, Process& p, std::size_t elements) noexcept {
    if constexpr (possible) {
      if (2 * elements > size() && size() < most) {
        if (elements < fewest) return;
        grow(2 * elements < most ? std::bit_ceil(2 * elements) : most);
        if (entries_ == nullptr) return;
      }
      entries_[at(i)] = {i, &p};
    }
  }
  void forget(const Index& i, const Process& p) noexcept {
    if constexpr (possible)
      if (entries_ != nullptr)
        if (entry& e = entries_[at(i)]; e.process == &p) e.process = nullptr;
  }
  [[nodiscard]] std::size_t size() const noexcept { return entries_ != nullptr ? mask_ + 1 : 0; }
  [[nodiscard]] std::size_t bytes() const noexcept { return size() * sizeof(entry); }

 private:
  struct entry {
    Index index{};
    Process* process = nullptr;
  };

  static constexpr std::uint64_t golden = 0x9e3779b97f4a7c15ULL;  // of 2^64

  [[nodiscard]] std::size_t at(const Index& i) const noexcept {
    if constexpr (is_coordinates<Index>) {
      std::uint64_t h = 0;
      for (const auto x : i) h = (h * golden >> shift_) + static_cast<std::uint64_t>(x);
      return h & mask_;
    } else {
      return static_cast<std::uint64_t>(i) & mask_;
    }
  }
  // Empty afterwards: it fills again by itself. Without memory for it there is none.
  void grow(std::size_t size) noexcept {
    entries_.reset(new (std::nothrow) entry[size]());
    mask_ = size - 1;
    shift_ = std::countl_zero(std::uint64_t{mask_});
  }

  wire::unique_ptr<entry[]> entries_;
  std::size_t mask_ = 0;
  int shift_ = 0;
};

}  // namespace orrery::detail
