// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/service/chained_range.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace orrery::service {

/// One thing to be done to ranges.
struct balance_order {
  enum class kind : std::uint8_t {
    split,  ///< the range
    merge,  ///< the range with the one behind it
    move,   ///< the range to the PE
  };
  kind what = kind::split;
  std::size_t range = 0;
  std::uint32_t pe = 0;

  friend bool operator==(const balance_order&, const balance_order&) = default;
};

/// The moves that make the loads of the PEs more equal, and ranges neither too small nor too hot.
///
/// `ranges` are all ranges in the order of their keys, with what they have done since the last
/// plan; `pes` those that the service is on; `limit` the number of items above which ranges split
/// by themselves (0: none).
///
/// The load of a range is its time, and a little for each request. A range with more than its PE's
/// share is split. One most of whose clients are on another PE goes there, if that PE has room.
/// Then ranges go from the PE with the most load to that with the least, where this helps. Two
/// neighbours that have few items (half of the limit together) and little load become one.
/// Each range is in one order at most.
[[nodiscard]] std::vector<balance_order> plan_balance(std::span<const range_load> ranges,
                                                      std::span<const std::uint32_t> pes, std::uint64_t limit);

}  // namespace orrery::service
