// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/index_part.hpp>
#include <orrery/array/placement_map.hpp>

#include <cstdint>
#include <string>

namespace orrery {

/// How an array is made. Settings that are left out have good defaults.
template <array_index Index>
struct array_options {
  std::string name = "array";  ///< for errors
  placement_map<Index> home{};  ///< the home of each index; its elements are created there
  /// PEs that always know where an element is: its home, and others at equal distances.
  std::uint32_t homes = 1;
  std::uint32_t branching = 4;  ///< of the spanning tree of broadcasts and reductions
  /// Elements are packed even when they stay in their OS process: for tests.
  bool always_serialize = false;
  /// Places of elements that a PE remembers; rarely used ones are forgotten beyond.
  std::uint32_t cached = 1 << 16;
  /// Deleted indices that a home remembers, the latest: messages to others wait as if they were
  /// early.
  std::uint32_t deleted = 1 << 16;
  /// Limit of the messages that wait on a PE for elements to be created; more fail with
  /// mailbox_full.
  std::uint64_t early_bytes = 64 << 20;
};

namespace detail {
template <class Index>
typename index_part<Index>::settings settings_of(const array_options<Index>& o) {
  return {o.home, o.homes, o.always_serialize, o.cached, o.deleted, o.early_bytes};
}
}  // namespace detail

}  // namespace orrery
