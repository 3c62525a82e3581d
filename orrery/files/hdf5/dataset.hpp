// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/files/hdf5/library.hpp>
#include <orrery/files/new_file.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <hdf5.h>

namespace orrery::hdf5 {

/// A dataset in a file that is there, read by boxes.
///
/// Owned by one process. Blocks its PE while the library works; see library.hpp on threads. Throws
/// std::invalid_argument, whose texts name the file and the dataset and say what to do.
class dataset_reader {
 public:
  /// `name`: empty if it is the only one in the file. `option`: how a user says which one.
  /// `cache_bytes`: for chunks that are compressed.
  dataset_reader(const std::string& path, const std::string& name, const std::string& option, std::size_t cache_bytes);

  /// "/x in a.h5"
  [[nodiscard]] const std::string& what() const { return what_; }
  /// The number of elements along each dimension.
  [[nodiscard]] const std::vector<hsize_t>& sides() const { return sides_; }
  /// Less than this at once costs as much as all of it; empty if the dataset has no chunks.
  [[nodiscard]] const std::vector<hsize_t>& chunk() const { return chunk_; }
  /// The type of its elements in the file.
  [[nodiscard]] handle stored_type() const;
  /// Throws if a filter is missing that its chunks need.
  void require_filters() const;
  /// Fills memory with a box, the last dimension running fastest.
  void read(const std::vector<hsize_t>& first, const std::vector<hsize_t>& count, hid_t memory_type, void* into) const;

 private:
  std::string what_;
  handle file_;
  handle set_;
  std::vector<hsize_t> sides_;
  std::vector<hsize_t> chunk_;
};

/// A dataset that is being written. A file of its own gets its name when it is complete. To one
/// that is there the dataset is added, and is unlinked again if finish() is not reached. Nothing is
/// overwritten. A program that is killed meanwhile may leave a file that no program opens before
/// `h5clear -s`. As dataset_reader, else.
class dataset_writer {
 public:
  dataset_writer(const std::string& path, const std::string& name, const std::vector<hsize_t>& sides,
                 const number& elements, const std::string& option);
  dataset_writer(const dataset_writer&) = delete;
  dataset_writer& operator=(const dataset_writer&) = delete;
  ~dataset_writer();
  /// Writes a box, the last dimension running fastest.
  void write(const std::vector<hsize_t>& first, const std::vector<hsize_t>& count, const void* from);
  /// The dataset is complete. Throws what closing the file says.
  void finish();

 private:
  void open_existing(const std::string& option);

  std::string path_;
  std::string name_;
  std::string what_;
  std::optional<orrery::detail::new_file> fresh_;  // destroyed after the file is closed
  handle file_;
  handle memory_type_;
  handle set_;
  bool linked_ = false;
};

}  // namespace orrery::hdf5
