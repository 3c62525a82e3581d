// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace orrery::detail {

/// Which PEs are the homes of an index, of which the first is given (paper, section 3.1: "k
/// separate mappings"): the first, and others behind it, all as far from each other as can be. PEs
/// of a node have consecutive numbers: with as many homes as nodes each node has one.
class homes {
 public:
  homes(std::uint32_t pes, std::uint32_t count) noexcept
      : pes_(pes != 0 ? pes : 1),
        count_(count == 0     ? 1
               : count < pes_ ? count
                              : pes_) {}

  [[nodiscard]] std::uint32_t count() const noexcept { return count_; }
  [[nodiscard]] bool contains(std::uint32_t first, std::uint32_t pe) const noexcept {
    return at(first, before(first, pe)) == pe;
  }
  /// The home that is the last one before a PE, or on it, and the one behind that.
  struct neighbours {
    std::uint32_t below;
    std::uint32_t above;
  };
  [[nodiscard]] neighbours around(std::uint32_t first, std::uint32_t pe) const noexcept {
    const std::uint32_t n = before(first, pe);
    return {at(first, n), at(first, n + 1 < count_ ? n + 1 : 0)};
  }
  /// All but the first.
  [[nodiscard]] std::vector<std::uint32_t> others(std::uint32_t first) const {
    std::vector<std::uint32_t> all;
    for (std::uint32_t n = 1; n < count_; ++n) all.push_back(at(first, n));
    return all;
  }

 private:
  [[nodiscard]] std::uint32_t at(std::uint32_t first, std::uint32_t n) const noexcept {
    return static_cast<std::uint32_t>((first + std::uint64_t{n} * pes_ / count_) % pes_);
  }
  // The largest n whose home is not behind the PE.
  [[nodiscard]] std::uint32_t before(std::uint32_t first, std::uint32_t pe) const noexcept {
    const std::uint64_t distance = (std::uint64_t{pe} + pes_ - first) % pes_;
    return static_cast<std::uint32_t>(((distance + 1) * count_ + pes_ - 1) / pes_ - 1);
  }

  std::uint32_t pes_;
  std::uint32_t count_;
};

}  // namespace orrery::detail
