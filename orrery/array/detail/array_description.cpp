// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/detail/array_description.hpp>

#include <algorithm>

namespace orrery::detail {

std::uint32_t array_pes::rank_in_list(std::uint32_t pe) const noexcept {
  const auto it = std::lower_bound(list_.begin(), list_.end(), pe);
  return it != list_.end() && *it == pe ? static_cast<std::uint32_t>(it - list_.begin()) : none;
}

// In the tree the root is the first, and the others follow by rank.
std::uint64_t array_description::place_of(std::uint32_t pe) const noexcept {
  return (std::uint64_t{pes.rank_of(pe)} + pes.count() - pes.rank_of(root)) % pes.count();
}
std::uint32_t array_description::at_place(std::uint64_t place) const noexcept {
  return pes.at(static_cast<std::uint32_t>((place + pes.rank_of(root)) % pes.count()));
}
std::uint32_t array_description::parent_of(std::uint32_t pe) const noexcept {
  return at_place((place_of(pe) - 1) / std::max(1U, branching));
}
std::vector<std::uint32_t> array_description::children_of(std::uint32_t pe) const {
  std::vector<std::uint32_t> all;
  const std::uint64_t k = std::max(1U, branching);
  const std::uint64_t first = k * place_of(pe) + 1;
  for (std::uint64_t c = first; c < first + k && c < pes.count(); ++c) all.push_back(at_place(c));
  return all;
}

}  // namespace orrery::detail
