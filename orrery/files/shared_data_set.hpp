// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/files/file_options.hpp>
#include <orrery/shared/matrix.hpp>
#include <orrery/shared/vector.hpp>
#include <orrery/storage/array.hpp>
#include <orrery/storage/element_type.hpp>

#include <cstdint>
#include <source_location>

// Shared vectors and matrices from and to data sets of the storage layer, in bounded memory. A
// vector of n elements is an array with one side of n and two of 1. A matrix is one with a side of
// 1, anywhere, and the other two its rows and columns, in this order: {1, rows, columns}, say.

namespace orrery {

namespace detail {

[[nodiscard]] file_traffic load_array(const storage::array& from, const shared_id& to, storage::element_type type,
                                      const file_options& options, const std::source_location& where);
[[nodiscard]] file_traffic store_array(const shared_id& from, const storage::array& to, storage::element_type type,
                                       const file_options& options, const std::source_location& where);

}  // namespace detail

/// Fills a shared vector or matrix with the elements of an array on disk. The PEs that own it share
/// the work: each reads boxes of whole pages, each page once, and puts the elements where they
/// belong, whatever the distribution.
///
/// Called by one process while nobody else uses `to`. Parks. Throws std::invalid_argument (another
/// shape or type of elements, or memory for less than three pages: the text says what would do),
/// usage_error (destroyed, somebody views it), node_lost, stopped, and what reading throws:
/// std::system_error with EBADMSG and the page's name for one that is damaged. Then a part of the
/// elements has been loaded.
///
///     auto set = spawn<storage::data_set>(here(), "/data/x", storage::data_set_options{});
///     const storage::index3& shape = set->contents().shape();
///     const shared_matrix<double> m(shape[1], shape[2]);
///     load(set->contents(), m);
template <storage::element T>
file_traffic load(const storage::array& from, const shared_vector<T>& to, const file_options& options = {},
                  const std::source_location& where = std::source_location::current()) {
  return detail::load_array(from, to.id(), storage::element_type_of<T>, options, where);
}
template <storage::element T>
file_traffic load(const storage::array& from, const shared_matrix<T>& to, const file_options& options = {},
                  const std::source_location& where = std::source_location::current()) {
  return detail::load_array(from, to.id(), storage::element_type_of<T>, options, where);
}

/// The reverse. When it returns the elements are on the drives; the data set's finish() says that
/// they are all there. Each page is written by one process, so the array may be one of
/// data_set_options::on_each_node. Throws as load.
template <storage::element T>
file_traffic store(const shared_vector<T>& from, const storage::array& to, const file_options& options = {},
                   const std::source_location& where = std::source_location::current()) {
  return detail::store_array(from.id(), to, storage::element_type_of<T>, options, where);
}
template <storage::element T>
file_traffic store(const shared_matrix<T>& from, const storage::array& to, const file_options& options = {},
                   const std::source_location& where = std::source_location::current()) {
  return detail::store_array(from.id(), to, storage::element_type_of<T>, options, where);
}

}  // namespace orrery
