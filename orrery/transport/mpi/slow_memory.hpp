// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/transport/world.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <optional>
#include <utility>

namespace orrery::transport {

/// Memory for very large blocks that come from other machines.
///
/// Problem: the system takes seconds to give some GiB of memory. A carrier that waits for it gives
/// no sign of life meanwhile, and its node is taken for lost. So a thread waits, for one block at a
/// time, and the carrier asks again. Smaller blocks have their memory at once: the arena is not
/// locked while it is made for a large one.
///
/// Owned by the carrier, used under its lock.
class slow_memory {
 public:
  using source = std::function<result<world::memory_block>(std::uint64_t bytes)>;

  explicit slow_memory(source from, std::function<void(std::uint64_t offset)> release)
      : from_(std::move(from)), release_(std::move(release)) {}
  slow_memory(const slow_memory&) = delete;
  slow_memory& operator=(const slow_memory&) = delete;
  ~slow_memory() {
    wanted_by_.reset();
    while (is_busy()) memory_.wait();
  }

  /// Some memory is being waited for, or goes back, which may take as long.
  [[nodiscard]] bool is_busy() {
    if (!memory_.valid()) return false;
    if (wanted_by_ || memory_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return true;
    const auto unwanted = memory_.get();
    if (!unwanted) return false;
    memory_ = std::async(std::launch::async, [this, offset = unwanted->offset] {
      release_(offset);
      return result<world::memory_block>(std::unexpected(transport_error{}));
    });
    return true;
  }
  /// Memory for block number `who`; nothing while it is on its way. Ask again.
  [[nodiscard]] std::optional<result<world::memory_block>> get(std::uint64_t who, std::uint64_t bytes) {
    if (!is_busy()) {
      wanted_by_ = who;
      memory_ = std::async(std::launch::async, from_, bytes);
    }
    if (wanted_by_ != who || memory_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return {};
    wanted_by_.reset();
    return memory_.get();
  }
  /// The block does not come any more.
  void forget(std::uint64_t who) noexcept {
    if (wanted_by_ == who) wanted_by_.reset();
  }

 private:
  source from_;
  std::function<void(std::uint64_t offset)> release_;
  std::future<result<world::memory_block>> memory_;
  std::optional<std::uint64_t> wanted_by_;
};

}  // namespace orrery::transport
