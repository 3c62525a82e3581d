// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace orrery {

/// The elements beyond the edges of a matrix, for a halo.
enum class edges : std::uint8_t {
  open,  ///< nothing: the halo ends at the edge
  periodic,  ///< the opposite edge
};

}  // namespace orrery

namespace orrery::detail {

/// A run of indices of an axis, and where it lies in a copy.
struct stretch {
  std::uint64_t first;
  std::uint64_t count;
  std::uint64_t at;
};

/// Indices [first, first + count) of an axis of `size`, beyond whose ends it begins again.
[[nodiscard]] std::vector<stretch> wrapped(std::int64_t first, std::int64_t count, std::int64_t size);

/// Widens [first, first + count) by the width of a halo.
void widen(std::int64_t& first, std::int64_t& count, std::uint64_t width, edges beyond, std::uint64_t size) noexcept;

}  // namespace orrery::detail
