// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/order.hpp>
#include <orrery/array/detail/section_membership.hpp>
#include <orrery/array/detail/sequence_number.hpp>
#include <orrery/process/detail/send.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstdint>
#include <vector>

namespace orrery::detail {

class array_core;

/// The array's knowledge of an element of this PE.
struct cell_base {
  array_core* part = nullptr;
  slot* process = nullptr;
  std::uint32_t position = 0;  ///< among the part's cells
  sequence_number broadcasts;  ///< that the element has got, or that are in its mailbox
  sequence_number reductions;  ///< that it has contributed to
  std::uint32_t birth = 0;  ///< tells it from others with this index, before and after it
  std::uint32_t moves = 0;  ///< migrations so far
  bool ended = false;  ///< it was destroyed: only its destructor may still run
  std::uint64_t load_ns = 0;  ///< in its methods, while that is measured
  wire::unique_ptr<std::vector<membership>> sections;  ///< mostly null
  wire::unique_ptr<order_state> order;  ///< mostly null

  [[nodiscard]] order_state& order_of() {
    if (order == nullptr) order = wire::make_unique<order_state>();
    return *order;
  }
};

}  // namespace orrery::detail
