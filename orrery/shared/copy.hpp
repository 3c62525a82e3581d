// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/shared/detail/rectangle.hpp>
#include <orrery/shared/matrix.hpp>
#include <orrery/shared/vector.hpp>
#include <orrery/wire/error.hpp>

#include <algorithm>
#include <cstdint>
#include <source_location>
#include <span>
#include <type_traits>
#include <vector>

// Bulk transfer (Aurora's distmemcpy): between parts of shared vectors and matrices and local
// memory, whatever their distributions; those between shared data, and those that go on while the
// process does something else, are in transfer.hpp. Each reads or writes memory where it is here,
// and else sends a few large messages to the owners. A copy is complete when it returns. All park.
// They throw std::out_of_range (not inside), usage_error (other sizes, destroyed), node_lost,
// stopped.

namespace orrery {

namespace detail {
[[noreturn]] void throw_other_size(std::uint64_t from, std::uint64_t to);
[[noreturn]] void throw_other_size(const rectangle& part, std::uint64_t elements);
[[noreturn]] void throw_other_shape(const rectangle& from, const rectangle& to);
inline void require_same_size(std::uint64_t from, std::uint64_t to) {
  if (from != to) throw_other_size(from, to);
}
inline void require_same_size(const rectangle& r, std::uint64_t elements) {
  if (r.rows * r.columns != elements) throw_other_size(r, elements);
}

template <class T>
void read_elements(const rectangle& r, T* to, const std::source_location& where) {
  if constexpr (held_by_owner<T>) {
    read_held_region(r.id, {r.row, r.rows, r.column, r.columns}, to, where);
  } else {
    read_shared(r.id, r.row, r.rows, r.column, r.columns, reinterpret_cast<std::byte*>(to), r.columns * sizeof(T),
                where);
  }
}
template <class T>
void write_elements(const T* from, const rectangle& r, const std::source_location& where) {
  if constexpr (held_by_owner<T>) {
    write_held_region(from, r.id, {r.row, r.rows, r.column, r.columns}, where);
  } else {
    write_shared(r.id, r.row, r.rows, r.column, r.columns, reinterpret_cast<const std::byte*>(from),
                 r.columns * sizeof(T), where);
  }
}
}  // namespace detail

/// A vector, a matrix or a part of one to local memory, in the order of the indices, row after row.
/// Both have the same size.
template <detail::shared_part P>
void copy(const P& from, std::span<detail::element_of<P>> to,
          const std::source_location& where = std::source_location::current()) {
  const detail::rectangle r = detail::rectangle_of(from);
  detail::require_same_size(r, to.size());
  detail::read_elements(r, to.data(), where);
}
/// From local memory.
template <detail::shared_part P>
void copy(std::span<const detail::element_of<P>> from, const P& to,
          const std::source_location& where = std::source_location::current()) {
  const detail::rectangle r = detail::rectangle_of(to);
  detail::require_same_size(r, from.size());
  detail::write_elements(from.data(), r, where);
}

}  // namespace orrery
