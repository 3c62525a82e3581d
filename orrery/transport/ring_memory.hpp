// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/transport/ring.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace orrery::transport {

// The pages of rings in shared memory that are only there while they are used.
//
// Problem: rings between machines are many, and few of them are ever full: 64 PEs that talk to 64
// others each have 8,192 rings and mirrors.
// So a ring begins with the memory of its first page, takes more as records are written there, and
// gives all but the page of the next record back when it is empty and nobody has used it for a
// while. Positions and capacity stay what they are, so neither end need know. Memory that was given
// back reads as zeros, as a ring wants it that was never used.

inline constexpr std::uint64_t ring_page = 4096;

/// New memory of a ring: zeroed, and given back to the system but for the first page. `zeroed`: it
/// is so already. It begins at a page.
void prepare_ring_memory(std::span<std::byte> memory, bool zeroed) noexcept;

/// Gives back the pages of an empty ring but the first one and that of `position`, where the next
/// record will be. Called by who writes into the ring, when the reader has released all of it.
void reclaim_ring_memory(ring_header& header, std::uint64_t capacity, std::uint64_t position) noexcept;

/// Bytes of it that are in memory now. For tests.
[[nodiscard]] std::uint64_t resident_bytes(std::span<const std::byte> memory);

/// When a ring is worth it: it was idle, or nearly so, since the last look, and has been used since
/// it was reclaimed.
class ring_idleness {
 public:
  /// At a look now and then: where the ring is, which is empty. True: reclaim it.
  [[nodiscard]] bool look(std::uint64_t position, std::uint64_t capacity, bool is_empty) noexcept {
    const bool is_idle = position - seen_ <= capacity / 4;
    seen_ = position;
    return is_idle && is_empty && position - reclaimed_ > ring_page;
  }
  void reclaimed_at(std::uint64_t position) noexcept { reclaimed_ = position; }

 private:
  std::uint64_t seen_ = 0;
  std::uint64_t reclaimed_ = 0;
};

}  // namespace orrery::transport
