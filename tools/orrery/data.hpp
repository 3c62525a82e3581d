// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/storage/domain.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace orrery::tool {

/// What `orrery data` was asked for. Shapes are empty where they were not given.
struct data_request {
  std::string path;     ///< of the data set
  std::string file;     ///< to import from or export to, see array_file.hpp
  std::string dataset;  ///< in an HDF5 file
  std::string box;      ///< of `read`: "0:64,5,:"
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> page_shape = {};  ///< empty: by the shape of the array
  std::string type;
  std::vector<std::string> folders;  ///< for the devices of a new one
  bool json = false;
  bool unfinished = false;  ///< read also what its last writer has not finished
  std::string target;  ///< of a copy
  std::vector<std::int64_t> copy_pages = {};  ///< shape of its pages; empty: as they are
  std::string map;
  std::uint64_t memory = 0;  ///< 0: 256 MiB, or what the copy needs
};

// Each returns the exit code, and says on stderr why it is not 0. They run a world of their own, whose options are taken from the
// environment (ORRERY_PES and so on, but not ORRERY_WORLD). Memory is bounded: a block of 32 MiB (or a page, or a chunk of the file, if that is larger) and what devices use.

/// `orrery data info PATH`
int data_info(const data_request& r);
/// `orrery data verify PATH`: 1 if a page cannot be trusted.
int data_verify(const data_request& r);
/// `orrery data create PATH`: all zeros, finished.
int data_create(const data_request& r);
/// `orrery data import FILE PATH`
int data_import(const data_request& r);
/// `orrery data export PATH FILE`
int data_export(const data_request& r);
/// `orrery data read PATH --box B`: prints the elements of a part of the array, or writes them to a file.
int data_read(const data_request& r);
/// `orrery data copy PATH TARGET`: with other pages, page map, folders or elements; goes on with what was interrupted.
int data_copy(const data_request& r);
/// `orrery data remove PATH`
int data_remove(const data_request& r);

/// Runs the body in a world of its own, not in that of ORRERY_WORLD; what it throws is said as other errors of this program are.
int in_world(const std::function<int()>& body);
/// Writes a part of a data set to r.file.
void export_part(const data_request& r, const storage::domain& part);
/// The part of an array of that shape that a text like NumPy's slices stands for: "first:last,index,:", negative places counted from the end. Throws
/// command_error, which names the slice.
[[nodiscard]] storage::domain parse_box(const std::string& text, const storage::index3& shape);

}  // namespace orrery::tool
