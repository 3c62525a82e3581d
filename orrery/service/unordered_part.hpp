// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/service/range_process.hpp>

#include <cstdint>
#include <span>

namespace orrery::service {

/// A process of a service whose keys have no order: what asks for one fails with usage_error.
class unordered_part : public range_process {
 public:
  bytes scan(std::uint32_t limit, std::span<const std::byte> interval) final;
  bytes snapshot(std::span<const std::byte> interval) final;
  bytes pin(remote<presence> stream, std::span<const std::byte> interval) final;
  bytes read_pin(remote<presence> stream, std::uint32_t limit) final;
  void unpin(remote<presence>) final {}
  bytes first_item() final;
  bytes last_item() final;
  void split() final {}
  void tune(std::uint32_t) final {}
};

}  // namespace orrery::service
