// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/files/new_file.hpp>
#include <orrery/storage/domain.hpp>
#include <orrery/storage/element_type.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace orrery::tool {

/// How a file wants to be read or written: in which pieces, and in which order.
struct file_layout {
  storage::index3 unit{1, 1, 1};  ///< less than this at once costs as much as all of it: a chunk that is compressed
  std::array<int, 3> order{2, 1, 0};  ///< the dimensions, the one whose elements lie side by side first
  bool in_sequence = false;  ///< only from the beginning to the end
};

/// An array in a file of some format. A source is a file that is there; `read` fills memory with the elements of a box of the array. A sink is
/// being written. In memory the box is transposed by `order`: as it lies in the file.
///
/// Everything throws std::invalid_argument or std::system_error, whose texts name the file and say what to do.
struct array_file {
  storage::index3 shape{};
  storage::element_type type = storage::element_type::float64;
  storage::transposition order = storage::transposition::none;
  file_layout layout;

  array_file() = default;
  array_file(const array_file&) = delete;
  array_file& operator=(const array_file&) = delete;
  virtual ~array_file() = default;
};
struct array_source : array_file {
  std::string attributes;  ///< what the data set's header is to keep of it, see data_set_description
  virtual void read(const storage::domain& d, std::span<std::byte> into) = 0;
};
struct array_sink : array_file {
  virtual void write(const storage::domain& d, std::span<const std::byte> from) = 0;
  /// The file is complete. Who destroys a sink without that leaves nothing behind.
  virtual void finish() = 0;
};

/// What a user said of a file.
struct file_request {
  std::string path;
  std::string dataset;  ///< of an HDF5 file; empty: the only one there is
  std::optional<storage::index3> shape;  ///< of bare elements
  std::optional<storage::element_type> type;  ///< of bare elements; of others: what to make of them
};
/// What is to be written.
struct sink_request {
  std::string path;
  std::string dataset;
  storage::index3 shape{};
  storage::element_type type = storage::element_type::float64;
  std::string attributes;  ///< of the data set
  storage::index3 first{};  ///< where in the data set's array the part begins that is written
};

/// By the end of its name: .npy; .h5, .hdf5; .nii, .nii.gz, .hdr, .img; all others are bare elements.
[[nodiscard]] std::unique_ptr<array_source> open_source(const file_request& r);
[[nodiscard]] std::unique_ptr<array_sink> make_sink(const sink_request& r);

// The formats.
[[nodiscard]] std::unique_ptr<array_source> open_flat(const file_request& r);
[[nodiscard]] std::unique_ptr<array_sink> make_flat(const sink_request& r);
[[nodiscard]] std::unique_ptr<array_source> open_hdf5(const file_request& r);
[[nodiscard]] std::unique_ptr<array_sink> make_hdf5(const sink_request& r);
[[nodiscard]] std::unique_ptr<array_source> open_nifti(const file_request& r);
[[nodiscard]] std::unique_ptr<array_sink> make_nifti(const sink_request& r);

/// Three sides of any number of them: missing ones are 1 and lead (`trailing`: follow); those beyond the third must be 1. Throws
/// std::invalid_argument.
[[nodiscard]] storage::index3 three_sides(std::span<const std::int64_t> sides, bool trailing = false);

/// How many elements an array of that shape has, if all their bytes can be counted. Throws std::invalid_argument, also for a side below 1.
std::int64_t checked_elements(const storage::index3& shape, std::size_t element_bytes);
/// Throws std::invalid_argument for a FIFO, a device or a folder. What is not there is not its matter.
void require_regular(const std::string& path);

/// Calls f with boxes that together are the array, in the order of the file: boxes of whole pages and units as far as they fit into `budget`
/// bytes, and as long runs of the file as can be.
void for_each_block(const array_file& file, const storage::index3& page_shape, std::size_t budget,
                    const std::function<void(const storage::domain&)>& f);

using detail::new_file;

/// True if `text` ends in one of these, in capitals or not.
[[nodiscard]] bool ends_in(const std::string& text, std::initializer_list<std::string_view> ends);

}  // namespace orrery::tool
