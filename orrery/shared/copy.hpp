// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/shared/matrix.hpp>
#include <orrery/shared/rectangle.hpp>
#include <orrery/shared/vector.hpp>
#include <orrery/wire/error.hpp>

#include <algorithm>
#include <cstdint>
#include <source_location>
#include <span>
#include <type_traits>
#include <vector>

// Bulk transfer (Aurora's distmemcpy): between parts of shared vectors and matrices and local
// memory, whatever their distributions. Each reads or writes memory where it is on this machine,
// and else sends a few large messages to the owners. A copy is complete when it returns. All park.
// They throw std::out_of_range (not inside), usage_error (other sizes, destroyed), node_lost,
// stopped.

namespace orrery {

namespace detail {
[[noreturn]] void throw_other_size(std::uint64_t from, std::uint64_t to);
[[noreturn]] void throw_other_size(const rectangle& part, std::uint64_t elements);

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

/// To local memory, in the order of the indices. Both have the same size.
template <class T>
void copy(const vector_part<T>& from, std::span<std::type_identity_t<T>> to,
          const std::source_location& where = std::source_location::current()) {
  if (from.size() != to.size()) detail::throw_other_size(from.size(), to.size());
  detail::read_elements(detail::rectangle_of(from), to.data(), where);
}
template <class T>
void copy(const shared_vector<T>& from, std::span<std::type_identity_t<T>> to,
          const std::source_location& where = std::source_location::current()) {
  copy(from.part(0, from.size()), to, where);
}
/// From local memory.
template <class T>
void copy(std::span<const std::type_identity_t<T>> from, const vector_part<T>& to,
          const std::source_location& where = std::source_location::current()) {
  if (from.size() != to.size()) detail::throw_other_size(from.size(), to.size());
  detail::write_elements(from.data(), detail::rectangle_of(to), where);
}
template <class T>
void copy(std::span<const std::type_identity_t<T>> from, const shared_vector<T>& to,
          const std::source_location& where = std::source_location::current()) {
  copy(from, to.part(0, to.size()), where);
}
/// Between shared vectors, through memory of the caller, at most 1 MiB at a time. They must not
/// overlap.
template <class T>
void copy(const vector_part<T>& from, const vector_part<T>& to,
          const std::source_location& where = std::source_location::current()) {
  if (from.size() != to.size()) detail::throw_other_size(from.size(), to.size());
  constexpr std::uint64_t most = std::max<std::uint64_t>(1, (1 << 20) / sizeof(T));
  std::vector<T> between(std::min(most, from.size()));
  for (std::uint64_t done = 0; done < from.size(); done += most) {
    const std::uint64_t n = std::min(most, from.size() - done);
    copy(from.whole().part(from.first() + done, n), std::span(between).first(n), where);
    copy(std::span<const T>(between).first(n), to.whole().part(to.first() + done, n), where);
  }
}
/// A rectangle to local memory, row after row; and back.
template <class T>
void copy(const matrix_part<T>& from, std::span<std::type_identity_t<T>> to,
          const std::source_location& where = std::source_location::current()) {
  if (from.size() != to.size()) detail::throw_other_size(detail::rectangle_of(from), to.size());
  detail::read_elements(detail::rectangle_of(from), to.data(), where);
}
template <class T>
void copy(std::span<const std::type_identity_t<T>> from, const matrix_part<T>& to,
          const std::source_location& where = std::source_location::current()) {
  if (from.size() != to.size()) detail::throw_other_size(detail::rectangle_of(to), from.size());
  detail::write_elements(from.data(), detail::rectangle_of(to), where);
}

}  // namespace orrery
