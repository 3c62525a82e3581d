// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/detail/group_part.hpp>

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace orrery::detail {

/// The table from old to new names after a restart.
///
/// Problem: the states in a checkpoint hold remote pointers, groups and arrays; they name processes
/// of a world that is no more. So who reads a state gives its reader one of these
/// (reader::set_references), and what is read there is replaced by what was made anew, or by null
/// if that is not in the checkpoint. All other readers have none, which costs a look at a null
/// pointer for each remote pointer.
///
/// Filled before the first state is read and constant from then on. Owned by who restores; one for
/// each PE.
class references {
 public:
  void add_process(const address& before, const address& now);
  /// With all members, as they were by rank.
  void add_group(const std::vector<address>& before, const group_handle& now);
  /// Arrays have numbers.
  void add_array(std::uint32_t before, std::uint32_t now);

  [[nodiscard]] address process(const address& before) const noexcept;
  /// A group without members stays what it is.
  [[nodiscard]] group_handle group(const group_handle& before) const;
  [[nodiscard]] std::uint32_t array(std::uint32_t before) const noexcept;

 private:
  std::unordered_map<address, address> processes_;
  // by the first member: nobody is a member of two
  std::unordered_map<address, group_handle> groups_;
  std::unordered_map<std::uint32_t, std::uint32_t> arrays_;
};

/// The new number of an array.
[[nodiscard]] std::uint32_t renamed(const references& r, std::uint32_t array) noexcept;

}  // namespace orrery::detail
