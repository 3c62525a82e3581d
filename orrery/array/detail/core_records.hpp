// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/core.hpp>

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <utility>
#include <vector>

namespace orrery::detail {

/// The lists of the part of an array on one PE; array_core says what holds of them.
struct array_core::records {
  struct ack_round {
    sequence_number number;
    std::uint32_t left;
  };
  struct late_leave {
    membership of;
    bytes index;
  };

  std::deque<broadcast_record*> past;
  std::deque<ack_round> acks;  // by number
  std::vector<std::uint32_t> departed_to;  // PEs, since the last fence
  std::deque<open_reduction> open;
  // last reduction of destroyed elements, how many
  std::vector<std::pair<sequence_number, std::uint32_t>> departed_contributions;
  std::unordered_map<std::uint64_t, section_core*> sections;  // whose agent is here
  std::vector<std::uint64_t> wait_for_ends;  // calls
  std::vector<late_leave> late_leaves;  // members that have ended with the array
  std::vector<std::uint32_t> lost;  // PEs of the array that are gone
};

}  // namespace orrery::detail
