// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/shared/matrix.hpp>
#include <orrery/shared/transfer.hpp>
#include <orrery/shared/vector.hpp>

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <span>
#include <type_traits>
#include <vector>

// Elements by lists of their indices. All functions park, and throw as those of transfer.hpp.
namespace orrery {

namespace detail {

template <class T>
transfer start_gather_of(const shared_id& from, const index_source& indices, std::span<T> to,
                         const std::source_location& where) {
  require_bytes<T>();
  require_same_size(indices.count, to.size());
  return start_gather(from, indices, reinterpret_cast<std::byte*>(to.data()), where);
}
template <class T>
[[nodiscard]] std::vector<T> gather_of(const shared_id& from, const index_source& indices,
                                       const std::source_location& where) {
  require_bytes<T>();
  // also of bool, and of what has no default constructor
  std::vector<element_value<T>> values(indices.count);
  start_gather(from, indices, reinterpret_cast<std::byte*>(values.data()), where).wait();
  std::vector<T> all;
  all.reserve(values.size());
  for (const auto& v : values) all.push_back(v.get());
  return all;
}
template <class T>
transfer start_scatter_of(std::span<const T> values, const shared_id& to, const index_source& indices,
                          const std::source_location& where) {
  require_bytes<T>();
  require_same_size(values.size(), indices.count);
  return start_scatter(reinterpret_cast<const std::byte*>(values.data()), to, indices, where);
}

}  // namespace detail

/// to[k] = from[indices[k]]: all that one owner has travels together. The list must stay until
/// start_gather has returned. The list of a matrix has rows and columns.
template <class T>
transfer start_gather(const shared_vector<T>& from, std::span<const std::uint64_t> indices,
                      std::span<std::type_identity_t<T>> to,
                      std::source_location where = std::source_location::current()) {
  return detail::start_gather_of(from.id(), indices, to, where);
}
template <class T>
transfer start_gather(const shared_matrix<T>& from, std::span<const matrix_index> indices,
                      std::span<std::type_identity_t<T>> to,
                      std::source_location where = std::source_location::current()) {
  return detail::start_gather_of(from.id(), indices, to, where);
}
template <class T>
[[nodiscard]] std::vector<T> gather(const shared_vector<T>& from, std::span<const std::uint64_t> indices,
                                    std::source_location where = std::source_location::current()) {
  return detail::gather_of<T>(from.id(), indices, where);
}
template <class T>
[[nodiscard]] std::vector<T> gather(const shared_matrix<T>& from, std::span<const matrix_index> indices,
                                    std::source_location where = std::source_location::current()) {
  return detail::gather_of<T>(from.id(), indices, where);
}
/// to[indices[k]] = values[k]. Where an index is there twice, either value stays.
template <class T>
transfer start_scatter(std::span<const std::type_identity_t<T>> values, const shared_vector<T>& to,
                       std::span<const std::uint64_t> indices,
                       std::source_location where = std::source_location::current()) {
  return detail::start_scatter_of(values, to.id(), indices, where);
}
template <class T>
transfer start_scatter(std::span<const std::type_identity_t<T>> values, const shared_matrix<T>& to,
                       std::span<const matrix_index> indices,
                       std::source_location where = std::source_location::current()) {
  return detail::start_scatter_of(values, to.id(), indices, where);
}
template <class T>
void scatter(std::span<const std::type_identity_t<T>> values, const shared_vector<T>& to,
             std::span<const std::uint64_t> indices, std::source_location where = std::source_location::current()) {
  start_scatter(values, to, indices, where).wait();
}
template <class T>
void scatter(std::span<const std::type_identity_t<T>> values, const shared_matrix<T>& to,
             std::span<const matrix_index> indices, std::source_location where = std::source_location::current()) {
  start_scatter(values, to, indices, where).wait();
}

}  // namespace orrery
