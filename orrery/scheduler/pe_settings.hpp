// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/transport/sim/settings.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace orrery::scheduler {

struct fiber_pool;

/// The settings of the runtime that PEs need; see the runtime's options.
struct pe_settings {
  std::size_t method_stack = 256 << 10;
  std::size_t function_stack = 64 << 10;
  std::uint32_t mailbox_bytes = 256 << 10;
  std::uint64_t ring_bytes = 128 << 10;
  std::int64_t spin_ns = 50'000;
  bool follow_order = false;  ///< know what happens before what; see causality
  /// Count accesses to shared data, for advice about this network.
  std::optional<transport::link_cost> advise_for = {};
  bool yield = false;  ///< more PEs than cores: give the core away instead of spinning
  bool small_pages = false;  ///< so many PEs that each is to touch as little memory as it can
  fiber_pool* fibers = nullptr;  ///< shared by all PEs of a simulation; null: the PE has its own
};

}  // namespace orrery::scheduler
