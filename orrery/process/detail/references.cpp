// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/detail/references.hpp>

#include <cstddef>

namespace orrery::detail {

void references::add_process(const address& before, const address& now) { processes_.emplace(before, now); }

void references::add_array(std::uint32_t before, std::uint32_t now) { arrays_.emplace(before, now); }

void references::add_group(const std::vector<address>& before, const group_handle& now) {
  for (std::size_t rank = 0; rank < before.size(); ++rank) add_process(before[rank], now.data().members.at(rank));
  if (!before.empty()) groups_.emplace(before[0], now);
}

address references::process(const address& before) const noexcept {
  const auto it = processes_.find(before);
  return it != processes_.end() ? it->second : address{};
}

group_handle references::group(const group_handle& before) const {
  if (before.size() == 0) return before;
  const auto it = groups_.find(before.data().members[0]);
  return it != groups_.end() ? it->second : group_handle{};
}

std::uint32_t references::array(std::uint32_t before) const noexcept {
  const auto it = arrays_.find(before);
  return it != arrays_.end() ? it->second : 0;
}

address renamed(const references& r, const address& before) noexcept { return r.process(before); }
group_handle renamed(const references& r, const group_handle& before) { return r.group(before); }
std::uint32_t renamed(const references& r, std::uint32_t array) noexcept { return r.array(array); }

}  // namespace orrery::detail
