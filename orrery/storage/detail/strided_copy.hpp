// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/storage/domain.hpp>

#include <cstddef>

namespace orrery::storage {

/// The strides, in elements, of an array of that shape that lies without gaps in memory.
[[nodiscard]] constexpr index3 strides_of(const index3& shape) noexcept { return {shape[1] * shape[2], shape[2], 1}; }

/// Copies a box of elements from one array in memory to another: element (i1, i2, i3) from
/// `from + sum(i * from_strides)` to `to + sum(i * to_strides)`, strides in elements. With the
/// strides of one side permuted it transposes on the way.
///
/// The two must not overlap. `element_bytes` is 4, 8 or 16. Any thread; does not park. Rows that
/// are contiguous on both sides are copied as they are; where different dimensions are contiguous,
/// in tiles that stay in the first-level cache.
void copy_box(std::byte* to, const index3& to_strides, const std::byte* from, const index3& from_strides,
              const index3& shape, std::size_t element_bytes) noexcept;

}  // namespace orrery::storage
