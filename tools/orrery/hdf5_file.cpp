// SPDX-License-Identifier: Apache-2.0
// Arrays in HDF5 files, moved by hyperslabs.
#include "array_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <hdf5.h>
#include <unistd.h>

namespace orrery::tool {
namespace {

using namespace orrery::storage;

constexpr std::size_t chunk_cache_bytes = 32 << 20;

// What the library says of its innermost error: "truncated file: eof = 96, ...".
std::string reason() {
  std::string text;
  const auto take = [](unsigned n, const H5E_error2_t* e, void* to) -> herr_t {
    if (n == 0 && e->desc != nullptr) *static_cast<std::string*>(to) = e->desc;
    return 0;
  };
  (void)H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take, &text);
  return text.empty() ? "the library does not say why" : text;
}

template <class Id>
Id checked(Id id, const std::string& what) {
  if (id < 0) throw std::invalid_argument(fmt::format("{}: {}", what, reason()));
  return id;
}

// Closes what it holds.
class handle {
 public:
  using closer = herr_t (*)(hid_t);
  handle() = default;
  handle(hid_t id, closer close) : id_(id), close_(close) {}
  handle(handle&& o) noexcept : id_(std::exchange(o.id_, -1)), close_(o.close_) {}
  handle& operator=(handle&& o) noexcept {
    std::swap(id_, o.id_);
    std::swap(close_, o.close_);
    return *this;
  }
  ~handle() {
    if (id_ >= 0) (void)close_(id_);
  }
  operator hid_t() const { return id_; }  // NOLINT(google-explicit-constructor)
  // Throws what closing says: for files, which write what they still have.
  void close(const std::string& what) {
    if (id_ >= 0) (void)checked(close_(std::exchange(id_, -1)), what);
  }

 private:
  hid_t id_ = -1;
  closer close_ = nullptr;
};

// The names of all datasets in a file, in their order.
std::vector<std::string> datasets_of(hid_t file) {
  std::vector<std::string> names;
  const auto take = [](hid_t, const char* name, const H5O_info_t* info, void* to) -> herr_t {
    if (info->type == H5O_TYPE_DATASET) static_cast<std::vector<std::string>*>(to)->push_back(fmt::format("/{}", name));
    return 0;
  };
#if H5_VERSION_GE(1, 12, 0)
  (void)H5Ovisit3(file, H5_INDEX_NAME, H5_ITER_INC, take, &names, H5O_INFO_BASIC);
#else
  (void)H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_INC, take, &names, H5O_INFO_BASIC);
#endif
  return names;
}

// How many letters have to be changed, added or left out (Levenshtein).
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t corner = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = corner + (a[i - 1] == b[j - 1] ? 0 : 1);
      corner = row[j];
      row[j] = std::min({change, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

[[noreturn]] void no_such_dataset(const std::string& path, const std::string& wanted, std::vector<std::string> all) {
  std::string hint = "it has no datasets";
  if (!all.empty()) {
    std::string_view best = all.front();
    for (const std::string& name : all)
      if (distance(name, wanted) < distance(best, wanted)) best = name;
    const bool close = distance(best, wanted) <= std::max<std::size_t>(2, wanted.size() / 3);
    hint = close && !wanted.empty() ? fmt::format("did you mean {}? ", best) : std::string();
    constexpr std::size_t most = 20;
    const std::size_t more = all.size() > most ? all.size() - most : 0;
    all.resize(std::min(all.size(), most));
    hint += fmt::format("there {} {}{}", all.size() == 1 ? "is" : "are", fmt::join(all, ", "),
                        more > 0 ? fmt::format(" and {} more", more) : "");
  }
  throw std::invalid_argument(wanted.empty() ? fmt::format("{}: say which --dataset: {}", path, hint)
                                             : fmt::format("{} has no dataset {}: {}", path, wanted, hint));
}

std::string absolute(const std::string& name) { return name.starts_with('/') ? name : "/" + name; }

// True if every group on the way and the last link exist.
bool is_there(hid_t file, const std::string& name) {
  for (std::size_t end = name.find('/', 1);; end = name.find('/', end + 1)) {
    if (H5Lexists(file, name.substr(0, end).c_str(), H5P_DEFAULT) <= 0) return false;
    if (end == std::string::npos) return H5Oexists_by_name(file, name.c_str(), H5P_DEFAULT) > 0;
  }
}

hid_t real_type(element_type t) {
  return t == element_type::float32 || t == element_type::complex64 ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE;
}
bool is_complex(element_type t) { return t == element_type::complex64 || t == element_type::complex128; }

// As h5py has complex numbers: a compound of r and i.
handle memory_type(element_type t, const std::string& real, const std::string& imaginary) {
  if (!is_complex(t)) return {H5Tcopy(real_type(t)), &H5Tclose};
  handle h(H5Tcreate(H5T_COMPOUND, size_of(t)), &H5Tclose);
  (void)checked(H5Tinsert(h, real.c_str(), 0, real_type(t)), "HDF5");
  (void)checked(H5Tinsert(h, imaginary.c_str(), size_of(t) / 2, real_type(t)), "HDF5");
  return h;
}

struct number_type {
  element_type type;
  std::string real, imaginary;  // names of the parts
};

std::string name_of_class(H5T_class_t c) {
  switch (c) {
    case H5T_STRING:
      return "strings";
    case H5T_COMPOUND:
      return "records";
    case H5T_ENUM:
      return "booleans, or of another enumeration";
    case H5T_REFERENCE:
      return "references";
    case H5T_VLEN:
      return "lists of different lengths";
    case H5T_ARRAY:
      return "arrays";
    default:
      return "of a class of its own";
  }
}

// The elements that a dataset's become here; nothing if they are no numbers.
std::optional<number_type> number_of(hid_t t) {
  const H5T_class_t kind = H5Tget_class(t);
  const std::size_t size = H5Tget_size(t);
  if (kind == H5T_FLOAT && size <= 8)
    return number_type{size <= 4 ? element_type::float32 : element_type::float64, {}, {}};
  if (kind == H5T_INTEGER) return number_type{size <= 2 ? element_type::float32 : element_type::float64, {}, {}};
  if (kind != H5T_COMPOUND || H5Tget_nmembers(t) != 2) return std::nullopt;
  std::string names[2];
  std::size_t largest = 0;
  for (unsigned k = 0; k < 2; ++k) {
    char* const name = H5Tget_member_name(t, k);
    names[k] = name;
    (void)H5free_memory(name);
    const handle part(H5Tget_member_type(t, k), &H5Tclose);
    if (H5Tget_class(part) != H5T_FLOAT) return std::nullopt;
    largest = std::max(largest, H5Tget_size(part));
  }
  const auto first = static_cast<char>(names[0].empty() ? 0 : names[0][0] | 0x20);
  const auto second = static_cast<char>(names[1].empty() ? 0 : names[1][0] | 0x20);
  if (largest > 8 || first != 'r' || second != 'i') return std::nullopt;  // r and i, re and im, real and imag
  return number_type{largest <= 4 ? element_type::complex64 : element_type::complex128, names[0], names[1]};
}

// A dataset's filters must be there: what a plug-in has compressed only that can read.
void require_filters(hid_t properties, const std::string& what) {
  const int n = H5Pget_nfilters(properties);
  for (int k = 0; k < n; ++k) {
    unsigned flags = 0;
    std::size_t values = 0;
    char name[64] = "";
    const H5Z_filter_t id =
        H5Pget_filter2(properties, static_cast<unsigned>(k), &flags, &values, nullptr, sizeof name, name, nullptr);
    if (H5Zfilter_avail(id) > 0) continue;
    throw std::invalid_argument(fmt::format(
        "{} was compressed by the filter {} ({}), which this HDF5 library does not have: set HDF5_PLUGIN_PATH to where it is, or "
        "convert the file with h5repack -f GZIP=6",
        what, id, name[0] != 0 ? name : "without a name"));
  }
}

void quiet() { (void)H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr); }

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
