// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace orrery::scheduler {

/// The known progress of *strands*: for each the latest time up to which all that it did comes
/// before. (A strand is one method run, or several that follow each other; see causality.) A value;
/// only strands that were stamped have an entry.
class vector_clock {
 public:
  struct entry {
    std::uint64_t strand;
    std::uint64_t time;
    friend bool operator==(const entry&, const entry&) noexcept = default;
  };

  /// 0: nothing is known of the strand.
  [[nodiscard]] std::uint64_t of(std::uint64_t strand) const noexcept;
  /// Makes the time of a strand at least `time`. True if that changed something.
  bool raise(std::uint64_t strand, std::uint64_t time);
  /// Takes the later time of each strand. True if that changed something.
  bool join(const vector_clock& other);
  [[nodiscard]] bool empty() const noexcept { return all_.empty(); }
  /// In the order of the strands' numbers.
  [[nodiscard]] std::span<const entry> entries() const noexcept { return all_; }

  template <class A>
  void serialize(A& a) {
    a & all_;
  }

 private:
  std::vector<entry> all_;
};

}  // namespace orrery::scheduler
