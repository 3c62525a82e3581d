// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/array_pes.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace orrery::detail {

/// An array as all its PEs know it, and the spanning tree of its broadcasts and reductions.
struct array_description {
  std::uint32_t id = 0;
  std::uint32_t root = 0;
  array_pes pes;
  std::uint32_t branching = 4;
  std::string name;
  /// In the spanning tree. Not of the root.
  [[nodiscard]] std::uint32_t parent_of(std::uint32_t pe) const noexcept;
  [[nodiscard]] std::vector<std::uint32_t> children_of(std::uint32_t pe) const;
  template <class A>
  void serialize(A& a) {
    a & id & root & pes & branching & name;
  }

 private:
  [[nodiscard]] std::uint64_t place_of(std::uint32_t pe) const noexcept;
  [[nodiscard]] std::uint32_t at_place(std::uint64_t place) const noexcept;
};

}  // namespace orrery::detail
