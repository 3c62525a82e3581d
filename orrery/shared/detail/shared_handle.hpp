// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/shared/detail/axis.hpp>
#include <orrery/shared/detail/shared_id.hpp>
#include <orrery/shared/distribution.hpp>

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <span>

// The common part of handles of all element types, out of line.
namespace orrery::detail {

/// The elements of a shared object that somebody means: all or a part. Those of a vector are rows
/// of one column.
struct rectangle {
  shared_id id;
  std::uint64_t row;
  std::uint64_t rows;
  std::uint64_t column;
  std::uint64_t columns;
};

/// A shared object of this shape; parks. `value`: what all elements are to be; none: zero bytes.
/// `held_size`: what an owner holds for each element beside it.
[[nodiscard]] shared_id make_shared(const char* what, std::uint64_t rows, std::uint64_t columns,
                                    std::uint32_t element_bytes, const distribution& how,
                                    std::span<const std::byte> value, const std::source_location& where,
                                    std::uint32_t held_size = 0);
/// Ends an object; parks.
void destroy_shared(const shared_id& id, const std::source_location& where);
/// Makes all elements `value`; parks.
void fill_shared(const shared_id& id, std::span<const std::byte> value, const std::source_location& where);
/// Moves elements between local memory and a rectangle of an object; `pitch`: bytes between rows of
/// the memory. Parks.
void read_shared(const shared_id& id, std::uint64_t row, std::uint64_t rows, std::uint64_t column,
                 std::uint64_t columns, std::byte* to, std::uint64_t pitch, const std::source_location& where);
void write_shared(const shared_id& id, std::uint64_t row, std::uint64_t rows, std::uint64_t column,
                  std::uint64_t columns, const std::byte* from, std::uint64_t pitch, const std::source_location& where);

/// The part of an object that a PE owns.
struct own_elements {
  std::byte* first = nullptr;
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::uint64_t pitch = 0;  ///< elements from a row to the next
  axis_walk row_walk;
  axis_walk column_walk;
};
[[nodiscard]] own_elements elements_of_this_pe(const shared_id& id);

}  // namespace orrery::detail
