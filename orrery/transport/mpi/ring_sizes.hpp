// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace orrery::transport {

/// How large the rings of a node to other machines are.
///
/// Problem: each pair of PEs that talk has a ring at the sender and a mirror of the same size at
/// the receiver. 64 PEs that each talk to 64 others would take 1 GiB of rings alone, where few of
/// them ever are full. So the first rings of a node have the size that the user wants, and the more
/// there are the smaller later ones are: each takes a 64th of what is left of `budget` at most.
/// Rings of the `least` size are made beyond it.
///
/// Owned by the carrier. Thread-safe.
class ring_sizes {
 public:
  static constexpr std::uint64_t budget = std::uint64_t{256} << 20;
  /// Holds 8 records of 4 KiB; larger payloads travel as blocks.
  static constexpr std::uint64_t least = 32 << 10;

  /// The size of the next ring: `wanted`, a power of two, or less.
  [[nodiscard]] std::uint64_t next(std::uint64_t wanted) noexcept {
    std::uint64_t used = used_.load(std::memory_order_relaxed);  // a sum alone
    std::uint64_t size = 0;
    do {
      size = wanted;
      while (size > least && size * share > budget - std::min(used, budget)) size /= 2;
    } while (!used_.compare_exchange_weak(used, used + size, std::memory_order_relaxed));
    return size;
  }

 private:
  static constexpr std::uint64_t share = 64;
  std::atomic<std::uint64_t> used_{0};
};

}  // namespace orrery::transport
