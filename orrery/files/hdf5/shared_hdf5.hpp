// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/files/file_options.hpp>
#include <orrery/shared/matrix.hpp>
#include <orrery/shared/vector.hpp>

#include <complex>
#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string>
#include <type_traits>
#include <vector>

// Shared vectors and matrices from and to HDF5 files, in bounded memory. A vector is a dataset with
// one dimension, a matrix one with two; sides of 1 more do not matter. A program that includes this
// links the library orrery::hdf5 (`target_link_libraries(... orrery::hdf5)`).

namespace orrery {

/// The types that elements may have: integers of 8 to 64 bits, float, double, and std::complex of
/// these (a compound of r and i in the file, as h5py has them).
template <class T>
concept hdf5_element = (std::is_arithmetic_v<T> && !std::is_same_v<T, bool> && sizeof(T) <= 8) ||
                       std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

namespace detail {

struct hdf5_type {
  char kind;  ///< as in hdf5::number
  std::size_t bytes;
};
template <hdf5_element T>
inline constexpr hdf5_type hdf5_type_of{!std::is_arithmetic_v<T>      ? 'c'
                                        : std::is_floating_point_v<T> ? 'f'
                                        : std::is_signed_v<T>         ? 'i'
                                                                      : 'u',
                                        sizeof(T)};

file_traffic load_hdf5(const std::string& file, const std::string& dataset, const shared_id& to, hdf5_type type,
                       const file_options& options, const std::source_location& where);
file_traffic store_hdf5(const shared_id& from, int dimensions, const std::string& file, const std::string& dataset,
                        hdf5_type type, const file_options& options, const std::source_location& where);

}  // namespace detail

/// The sides of a dataset in an HDF5 file: of what shape the shared vector or matrix must be.
/// `dataset` may be empty if there is only one. Throws as load_hdf5.
[[nodiscard]] std::vector<std::uint64_t> hdf5_sides(const std::string& file, const std::string& dataset);

/// Fills a shared vector or matrix with a dataset of an HDF5 file, by boxes of whole chunks. The
/// process that calls reads the file and sends the elements to where they belong.
///
/// Called by one process, on a node that sees the file, while nobody else uses `to`. Parks, and
/// blocks its PE while the HDF5 library reads. Throws std::system_error (the file cannot be
/// opened), std::invalid_argument (no HDF5 file, no such dataset, another shape or type of
/// elements, damage that the library finds, memory for less than a chunk twice: the text says what
/// and what would do), usage_error (destroyed, somebody views it), node_lost, stopped. If it throws
/// while it reads, a part of the elements has been loaded.
///
///     const auto sides = hdf5_sides("run.h5", "/temperature");
///     const shared_matrix<double> t(sides.at(0), sides.at(1));
///     load_hdf5("run.h5", "/temperature", t);
template <hdf5_element T>
file_traffic load_hdf5(const std::string& file, const std::string& dataset, const shared_vector<T>& to,
                       const file_options& options = {},
                       const std::source_location& where = std::source_location::current()) {
  return detail::load_hdf5(file, dataset, to.id(), detail::hdf5_type_of<T>, options, where);
}
template <hdf5_element T>
file_traffic load_hdf5(const std::string& file, const std::string& dataset, const shared_matrix<T>& to,
                       const file_options& options = {},
                       const std::source_location& where = std::source_location::current()) {
  return detail::load_hdf5(file, dataset, to.id(), detail::hdf5_type_of<T>, options, where);
}

/// The reverse: a new file, which gets its name when it is complete, or a dataset more in a file
/// that is there. Nothing is overwritten (std::system_error with EEXIST), and what fails leaves
/// nothing behind; a program that is killed while it adds to a file may leave that file marked as
/// open (`h5clear -s`) or damaged. Throws as load_hdf5.
template <hdf5_element T>
file_traffic store_hdf5(const shared_vector<T>& from, const std::string& file, const std::string& dataset,
                        const file_options& options = {},
                        const std::source_location& where = std::source_location::current()) {
  return detail::store_hdf5(from.id(), 1, file, dataset, detail::hdf5_type_of<T>, options, where);
}
template <hdf5_element T>
file_traffic store_hdf5(const shared_matrix<T>& from, const std::string& file, const std::string& dataset,
                        const file_options& options = {},
                        const std::source_location& where = std::source_location::current()) {
  return detail::store_hdf5(from.id(), 2, file, dataset, detail::hdf5_type_of<T>, options, where);
}

}  // namespace orrery
