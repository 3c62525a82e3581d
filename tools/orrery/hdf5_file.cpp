// SPDX-License-Identifier: Apache-2.0
// Arrays in HDF5 files, moved by hyperslabs.
#include "array_file.hpp"
#include "hdf5_library.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

namespace orrery::tool {
namespace {

using namespace orrery::storage;

constexpr std::size_t chunk_cache_bytes = 32 << 20;

class hdf5_source final : public array_source {
 public:
  explicit hdf5_source(const file_request& r) {
    quiet();
    if (r.shape) throw std::invalid_argument(fmt::format("{} knows its shape: leave --shape out", r.path));
    const htri_t good = H5Fis_hdf5(r.path.c_str());
    if (good == 0) throw std::invalid_argument(fmt::format("{} is not an HDF5 file", r.path));
    file_ = {checked(H5Fopen(r.path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), fmt::format("cannot open {}", r.path)),
             &H5Fclose};
    std::string name = r.dataset;
    if (name.empty() || !is_there(file_, absolute(name))) {
      const auto all = datasets_of(file_);
      if (!name.empty() || all.size() != 1) no_such_dataset(r.path, name.empty() ? name : absolute(name), all);
      name = all.front();
    }
    name = absolute(name);
    what_ = fmt::format("{} in {}", name, r.path);
    const handle access(H5Pcreate(H5P_DATASET_ACCESS), &H5Pclose);
    (void)H5Pset_chunk_cache(access, 12421, chunk_cache_bytes, 1);
    {
      const handle object(checked(H5Oopen(file_, name.c_str(), H5P_DEFAULT), what_), &H5Oclose);
      if (H5Iget_type(object) != H5I_DATASET) no_such_dataset(r.path, name, datasets_of(file_));
    }
    set_ = {checked(H5Dopen2(file_, name.c_str(), access), what_), &H5Dclose};
    set_type(r);
    set_shape();
  }

  void read(const domain& d, std::span<std::byte> into) override {
    const handle space(checked(H5Dget_space(set_), what_), &H5Sclose);
    std::vector<hsize_t> first(rank_, 0);
    std::vector<hsize_t> count(rank_, 1);
    for (int k = 0; k < 3; ++k) {
      if (axis_[k] < 0) continue;
      first[static_cast<std::size_t>(axis_[k])] = static_cast<hsize_t>(d.first[k]);
      count[static_cast<std::size_t>(axis_[k])] = static_cast<hsize_t>(d.shape()[k]);
    }
    const handle memory(H5Screate_simple(static_cast<int>(rank_), count.data(), nullptr), &H5Sclose);
    (void)checked(H5Sselect_hyperslab(space, H5S_SELECT_SET, first.data(), nullptr, count.data(), nullptr), what_);
    (void)checked(H5Dread(set_, memory_type_, memory, space, H5P_DEFAULT, into.data()),
                  fmt::format("cannot read the part {} of {}", storage::to_string(d), what_));
  }

 private:
  void set_type(const file_request& r) {
    const handle stored(checked(H5Dget_type(set_), what_), &H5Tclose);
    const auto number = number_of(stored);
    if (!number)
      throw std::invalid_argument(fmt::format(
          "the elements of {} are {}: arrays here hold float32, float64, complex64 or complex128 (a compound of r and i)",
          what_,
          H5Tget_class(stored) == H5T_FLOAT ? "numbers of more than 64 bits" : name_of_class(H5Tget_class(stored))));
    type = r.type.value_or(number->type);
    if (is_complex(type) != is_complex(number->type))
      throw std::invalid_argument(fmt::format("the elements of {} are {}, which cannot become {}", what_,
                                              is_complex(number->type) ? "complex" : "real", to_string(type)));
    memory_type_ = memory_type(type, number->real, number->imaginary);
  }
  void set_shape() {
    const handle space(checked(H5Dget_space(set_), what_), &H5Sclose);
    rank_ = static_cast<std::size_t>(std::max(H5Sget_simple_extent_ndims(space), 0));
    std::vector<hsize_t> sides(rank_);
    (void)H5Sget_simple_extent_dims(space, sides.data(), nullptr);
    try {
      shape = three_sides(std::vector<std::int64_t>(sides.begin(), sides.end()));
      checked_elements(shape, size_of(element_type::complex128));
    } catch (const std::invalid_argument& e) {
      throw std::invalid_argument(fmt::format("{} cannot be imported: {}", what_, e.what()));
    }
    for (int k = 0; k < 3; ++k) axis_[k] = rank_ >= 3 ? k : k - 3 + static_cast<int>(rank_);
    const handle properties(H5Dget_create_plist(set_), &H5Pclose);
    require_filters(properties, what_);
    if (H5Pget_layout(properties) != H5D_CHUNKED) return;
    std::vector<hsize_t> chunk(rank_);
    (void)H5Pget_chunk(properties, static_cast<int>(rank_), chunk.data());
    for (int k = 0; k < 3; ++k)
      if (axis_[k] >= 0)
        layout.unit[k] = std::min(static_cast<std::int64_t>(chunk[static_cast<std::size_t>(axis_[k])]), shape[k]);
  }

  std::string what_;
  handle file_;
  handle set_;
  handle memory_type_;
  std::size_t rank_ = 0;
  std::array<int, 3>
      axis_{};  // of the dataset, for each dimension of the array; below 0: a side of 1 that it does not have
};

// A file of its own gets its name when it is complete. To one that is there the dataset is added, and unlinked again if that fails.
class hdf5_sink final : public array_sink {
 public:
  explicit hdf5_sink(const sink_request& r) : path_(r.path), name_(absolute(r.dataset.empty() ? "data" : r.dataset)) {
    quiet();
    shape = r.shape;
    type = r.type;
    what_ = fmt::format("cannot write {} to {}", name_, path_);
    if (access(path_.c_str(), F_OK) == 0) {
      open_existing();
    } else {
      fresh_.emplace(path_);
      file_ = {H5Fcreate(fresh_->path().c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), &H5Fclose};
      (void)checked(hid_t{file_}, what_);
    }
    const handle links(H5Pcreate(H5P_LINK_CREATE), &H5Pclose);
    (void)H5Pset_create_intermediate_group(links, 1);
    const handle properties(H5Pcreate(H5P_DATASET_CREATE), &H5Pclose);
    (void)H5Pset_fill_time(properties, H5D_FILL_TIME_NEVER);
    const hsize_t sides[3] = {static_cast<hsize_t>(shape[0]), static_cast<hsize_t>(shape[1]),
                              static_cast<hsize_t>(shape[2])};
    const handle space(H5Screate_simple(3, sides, nullptr), &H5Sclose);
    memory_type_ = memory_type(type, "r", "i");
    set_ = {checked(H5Dcreate2(file_, name_.c_str(), memory_type_, space, links, properties, H5P_DEFAULT), what_),
            &H5Dclose};
    linked_ = true;
  }
  ~hdf5_sink() override {
    if (fresh_ || !linked_) return;
    set_ = {};
    (void)H5Ldelete(file_, name_.c_str(), H5P_DEFAULT);
  }

  void write(const domain& d, std::span<const std::byte> from) override {
    const handle space(checked(H5Dget_space(set_), what_), &H5Sclose);
    hsize_t first[3];
    hsize_t count[3];
    for (int k = 0; k < 3; ++k) {
      first[k] = static_cast<hsize_t>(d.first[k]);
      count[k] = static_cast<hsize_t>(d.shape()[k]);
    }
    const handle memory(H5Screate_simple(3, count, nullptr), &H5Sclose);
    (void)checked(H5Sselect_hyperslab(space, H5S_SELECT_SET, first, nullptr, count, nullptr), what_);
    (void)checked(H5Dwrite(set_, memory_type_, memory, space, H5P_DEFAULT, from.data()), what_);
  }
  void finish() override {
    (void)checked(H5Fflush(file_, H5F_SCOPE_GLOBAL), what_);
    linked_ = false;
    set_.close(what_);
    file_.close(what_);
    if (fresh_) fresh_->complete();
  }

 private:
  void open_existing() {
    if (H5Fis_hdf5(path_.c_str()) <= 0)
      throw std::invalid_argument(fmt::format("{} is there, and is not an HDF5 file: choose another name", path_));
    file_ = {checked(H5Fopen(path_.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), what_), &H5Fclose};
    if (is_there(file_, name_))
      throw std::system_error(EEXIST, std::system_category(),
                              fmt::format("{} is in {} already: choose another --dataset or file", name_, path_));
  }

  std::string path_;
  std::string name_;
  std::string what_;
  std::optional<new_file> fresh_;  // destroyed after the file is closed
  handle file_;
  handle memory_type_;
  handle set_;
  bool linked_ = false;
};

}  // namespace

std::unique_ptr<array_source> open_hdf5(const file_request& r) { return std::make_unique<hdf5_source>(r); }
std::unique_ptr<array_sink> make_hdf5(const sink_request& r) { return std::make_unique<hdf5_sink>(r); }

}  // namespace orrery::tool
