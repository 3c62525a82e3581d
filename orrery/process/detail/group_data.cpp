// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/detail/group_data.hpp>

#include <algorithm>
#include <functional>

#include <fmt/format.h>

namespace orrery::detail {

group_data::group_data(std::vector<address> m, const std::vector<address>& p) : members(std::move(m)) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> index;  // PE -> part
  for (const address& a : p) {
    index.emplace_back(a.pe, static_cast<std::uint32_t>(parts.size()));
    parts.push_back({a});
  }
  std::ranges::sort(index);
  part_of.reserve(members.size());
  for (std::uint32_t rank = 0; rank < members.size(); ++rank) {
    const auto it = std::ranges::lower_bound(index, members[rank].pe, {}, [](const auto& i) { return i.first; });
    if (it == index.end() || it->first != members[rank].pe)
      throw bad_message(errc::message_corrupt, "a group with a member on a PE where it has no part");
    part& q = parts[it->second];
    if (q.members++ == 0) q.first = rank;
    part_of.push_back(it->second);
  }
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (parts[i].members == 0 || (i > 0 && parts[i].first < parts[i - 1].first))
      throw bad_message(errc::message_corrupt, "a group whose parts do not fit its members");
}

const group_data::part* group_data::on(std::uint32_t pe) const noexcept {
  for (const part& p : parts)
    if (p.at.pe == pe) return &p;
  return nullptr;
}

void group_handle::throw_null() {
  throw usage_error(errc::null_pointer, verbatim,
                    "group: it has no members: it was default-constructed; assign one that spawn_group gave");
}

void throw_no_member(const char* what, std::size_t rank, std::size_t size) {
  throw usage_error(errc::bad_argument, fmt::format("{}: there is no rank {}: it has {} member{}, of ranks from 0 on",
                                                    what, rank, size, size == 1 ? "" : "s"));
}

std::strong_ordering operator<=>(const group_handle& a, const group_handle& b) noexcept {
  if (a.data_ == b.data_) return std::strong_ordering::equal;
  if (a.data_ == nullptr || b.data_ == nullptr) return (a.data_ != nullptr) <=> (b.data_ != nullptr);
  return a.data_->members <=> b.data_->members;
}

std::size_t group_handle::hash() const noexcept {
  std::size_t h = size();
  if (h != 0) h = std::hash<address>{}(data_->members.front()) * 31 + std::hash<address>{}(data_->members.back()) + h;
  return h;
}

std::string group_handle::text() const {
  constexpr std::size_t most = 8;
  if (data_ == nullptr) return "null";
  std::string all;
  for (std::size_t i = 0; i < size() && i < most; ++i) all += (i != 0 ? ", " : "") + to_string(data_->members[i]);
  return size() > most ? fmt::format("[{}, ... {} members]", all, size()) : fmt::format("[{}]", all);
}

}  // namespace orrery::detail
