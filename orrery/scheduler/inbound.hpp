// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/transport/ring.hpp>

#include <cstdint>

namespace orrery::scheduler {

/// A ring that this PE receives from.
struct inbound {
  transport::ring_consumer ring;
  std::uint32_t pe = 0;
  bool remote = false;
  bool lost = false;
  bool refused = false;  ///< its node is treated as lost, and was told if it lives
  /// Fibers in the middle of pe::drain, most of them parked in a method that ran from there.
  std::uint32_t drains = 0;
};

}  // namespace orrery::scheduler
