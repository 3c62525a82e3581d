// SPDX-License-Identifier: Apache-2.0
#include <orrery/files/hdf5/dataset.hpp>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

namespace orrery::hdf5 {

namespace {

// "0:8, 3:4", as NumPy writes a part
std::string part_text(const std::vector<hsize_t>& first, const std::vector<hsize_t>& count) {
  std::string text;
  for (std::size_t k = 0; k < first.size(); ++k)
    text += fmt::format("{}{}:{}", k == 0 ? "" : ", ", first[k], first[k] + count[k]);
  return text;
}

handle opened(const std::string& path, unsigned flags, const std::string& what) {
  const hid_t file = H5Fopen(path.c_str(), flags, H5P_DEFAULT);
  if (file >= 0) return {file, &H5Fclose};
  const std::string why = reason();
  // The mark of a writer stays in the file if that is killed.
  const bool marked = why.find("h5clear") != std::string::npos || why.find("already open for") != std::string::npos;
  throw std::invalid_argument(fmt::format(
      "{}: {}{}", what, why,
      marked ? fmt::format("; if no program is writing it, one was killed: h5clear -s {}", path) : std::string()));
}

// A box of a dataset in the file, and the same in memory.
struct selection {
  handle space;
  handle memory;
  selection(hid_t set, const std::vector<hsize_t>& first, const std::vector<hsize_t>& count, const std::string& what)
      : space(checked(H5Dget_space(set), what), &H5Sclose),
        memory(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr), &H5Sclose) {
    if (!first.empty())
      (void)checked(H5Sselect_hyperslab(space, H5S_SELECT_SET, first.data(), nullptr, count.data(), nullptr), what);
  }
};

}  // namespace

dataset_reader::dataset_reader(const std::string& path, const std::string& name, const std::string& option,
                               std::size_t cache_bytes) {
  quiet();
  if (access(path.c_str(), R_OK) != 0)
    throw std::system_error(errno, std::system_category(), fmt::format("cannot read {}", path));
  if (H5Fis_hdf5(path.c_str()) == 0) throw std::invalid_argument(fmt::format("{} is not an HDF5 file", path));
  file_ = opened(path, H5F_ACC_RDONLY, fmt::format("cannot open {}", path));
  std::string found = name;
  if (found.empty() || !is_there(file_, absolute(found))) {
    const auto all = datasets_of(file_);
    if (!found.empty() || all.size() != 1) no_such_dataset(path, found.empty() ? found : absolute(found), all, option);
    found = all.front();
  }
  found = absolute(found);
  what_ = fmt::format("{} in {}", found, path);
  {
    const handle object(checked(H5Oopen(file_, found.c_str(), H5P_DEFAULT), what_), &H5Oclose);
    if (H5Iget_type(object) != H5I_DATASET) no_such_dataset(path, found, datasets_of(file_), option);
  }
  const handle access_properties(H5Pcreate(H5P_DATASET_ACCESS), &H5Pclose);
  (void)H5Pset_chunk_cache(access_properties, 12421, cache_bytes, 1);
  set_ = {checked(H5Dopen2(file_, found.c_str(), access_properties), what_), &H5Dclose};

  const handle space(checked(H5Dget_space(set_), what_), &H5Sclose);
  sides_.resize(static_cast<std::size_t>(std::max(H5Sget_simple_extent_ndims(space), 0)));
  (void)H5Sget_simple_extent_dims(space, sides_.data(), nullptr);
  const handle properties(H5Dget_create_plist(set_), &H5Pclose);
  if (H5Pget_layout(properties) != H5D_CHUNKED) return;
  chunk_.resize(sides_.size());
  (void)H5Pget_chunk(properties, static_cast<int>(chunk_.size()), chunk_.data());
}

handle dataset_reader::stored_type() const { return {checked(H5Dget_type(set_), what_), &H5Tclose}; }

void dataset_reader::require_filters() const {
  const handle properties(H5Dget_create_plist(set_), &H5Pclose);
  hdf5::require_filters(properties, what_);
}

void dataset_reader::read(const std::vector<hsize_t>& first, const std::vector<hsize_t>& count, hid_t memory_type,
                          void* into) const {
  const selection box(set_, first, count, what_);
  (void)checked(H5Dread(set_, memory_type, box.memory, box.space, H5P_DEFAULT, into),
                fmt::format("cannot read the part {} of {}", part_text(first, count), what_));
}

dataset_writer::dataset_writer(const std::string& path, const std::string& name, const std::vector<hsize_t>& sides,
                               const number& elements, const std::string& option)
    : path_(path), name_(absolute(name.empty() ? "data" : name)) {
  quiet();
  what_ = fmt::format("cannot write {} to {}", name_, path_);
  if (access(path_.c_str(), F_OK) == 0) {
    open_existing(option);
  } else {
    fresh_.emplace(path_);
    file_ = {checked(H5Fcreate(fresh_->path().c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), what_), &H5Fclose};
  }
  const handle links(H5Pcreate(H5P_LINK_CREATE), &H5Pclose);
  (void)H5Pset_create_intermediate_group(links, 1);
  const handle properties(H5Pcreate(H5P_DATASET_CREATE), &H5Pclose);
  (void)H5Pset_fill_time(properties, H5D_FILL_TIME_NEVER);
  const handle space(checked(H5Screate_simple(static_cast<int>(sides.size()), sides.data(), nullptr), what_),
                     &H5Sclose);
  memory_type_ = memory_type(elements);
  set_ = {checked(H5Dcreate2(file_, name_.c_str(), memory_type_, space, links, properties, H5P_DEFAULT), what_),
          &H5Dclose};
  linked_ = true;
}

dataset_writer::~dataset_writer() {
  if (fresh_ || !linked_) return;
  set_ = {};
  (void)H5Ldelete(file_, name_.c_str(), H5P_DEFAULT);
}

void dataset_writer::write(const std::vector<hsize_t>& first, const std::vector<hsize_t>& count, const void* from) {
  const selection box(set_, first, count, what_);
  (void)checked(H5Dwrite(set_, memory_type_, box.memory, box.space, H5P_DEFAULT, from), what_);
}

void dataset_writer::finish() {
  (void)checked(H5Fflush(file_, H5F_SCOPE_GLOBAL), what_);
  linked_ = false;
  set_.close(what_);
  file_.close(what_);
  if (fresh_) fresh_->complete();
}

void dataset_writer::open_existing(const std::string& option) {
  if (H5Fis_hdf5(path_.c_str()) <= 0)
    throw std::invalid_argument(fmt::format("{} is there, and is not an HDF5 file: choose another name", path_));
  file_ = opened(path_, H5F_ACC_RDWR, what_);
  if (is_there(file_, name_))
    throw std::system_error(EEXIST, std::system_category(),
                            fmt::format("{} is in {} already: choose another {} or file", name_, path_, option));
}

}  // namespace orrery::hdf5
