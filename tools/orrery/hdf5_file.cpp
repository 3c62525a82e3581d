// SPDX-License-Identifier: Apache-2.0
// Arrays in HDF5 files, moved by hyperslabs.
#include "array_file.hpp"

#include <orrery/files/hdf5/dataset.hpp>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace orrery::tool {
namespace {

using namespace orrery::storage;

constexpr std::size_t chunk_cache_bytes = 32 << 20;
const std::string option = "--dataset";

/// The elements that such numbers become here; nothing if they become none.
std::optional<element_type> element_type_for(const std::optional<hdf5::number>& n) {
  if (!n) return std::nullopt;
  if (n->kind == 'c') return n->bytes <= 8 ? element_type::complex64 : element_type::complex128;
  if (n->kind != 'f') return n->bytes <= 2 ? element_type::float32 : element_type::float64;
  if (n->bytes > 8) return std::nullopt;
  return n->bytes <= 4 ? element_type::float32 : element_type::float64;
}

hdf5::number number_for(element_type t, const std::string& real = "r", const std::string& imaginary = "i") {
  return {is_complex(t) ? 'c' : 'f', size_of(t), real, imaginary};
}

class hdf5_source final : public array_source {
 public:
  explicit hdf5_source(const file_request& r) : set_(opened(r)), rank_(set_.sides().size()) {
    set_type(r);
    set_shape();
  }

  void read(const domain& d, std::span<std::byte> into) override {
    std::vector<hsize_t> first(rank_, 0);
    std::vector<hsize_t> count(rank_, 1);
    for (int k = 0; k < 3; ++k) {
      if (axis_[k] < 0) continue;
      first[static_cast<std::size_t>(axis_[k])] = static_cast<hsize_t>(d.first[k]);
      count[static_cast<std::size_t>(axis_[k])] = static_cast<hsize_t>(d.shape()[k]);
    }
    set_.read(first, count, memory_type_, into.data());
  }

 private:
  static hdf5::dataset_reader opened(const file_request& r) {
    if (r.shape) throw std::invalid_argument(fmt::format("{} knows its shape: leave --shape out", r.path));
    return {r.path, r.dataset, option, chunk_cache_bytes};
  }
  void set_type(const file_request& r) {
    const hdf5::handle stored = set_.stored_type();
    const auto number = hdf5::number_of(stored);
    const auto found = element_type_for(number);
    if (!found)
      throw std::invalid_argument(fmt::format(
          "the elements of {} are {}: arrays here hold float32, float64, complex64 or complex128 (a compound of r and i)",
          set_.what(), number ? "numbers of more than 64 bits" : hdf5::name_of_class(H5Tget_class(stored))));
    type = r.type.value_or(*found);
    if (is_complex(type) != is_complex(*found))
      throw std::invalid_argument(fmt::format("the elements of {} are {}, which cannot become {}", set_.what(),
                                              is_complex(*found) ? "complex" : "real", to_string(type)));
    memory_type_ = hdf5::memory_type(number_for(type, number->real, number->imaginary));
  }
  void set_shape() {
    try {
      shape = three_sides(std::vector<std::int64_t>(set_.sides().begin(), set_.sides().end()));
      checked_elements(shape, size_of(element_type::complex128));
    } catch (const std::invalid_argument& e) {
      throw std::invalid_argument(fmt::format("{} cannot be imported: {}", set_.what(), e.what()));
    }
    for (int k = 0; k < 3; ++k) axis_[k] = rank_ >= 3 ? k : k - 3 + static_cast<int>(rank_);
    set_.require_filters();
    if (set_.chunk().empty()) return;
    for (int k = 0; k < 3; ++k)
      if (axis_[k] >= 0)
        layout.unit[k] =
            std::min(static_cast<std::int64_t>(set_.chunk()[static_cast<std::size_t>(axis_[k])]), shape[k]);
  }

  hdf5::dataset_reader set_;
  hdf5::handle memory_type_;
  std::size_t rank_ = 0;
  std::array<int, 3>
      axis_{};  // of the dataset, for each dimension of the array; below 0: a side of 1 that it does not have
};

class hdf5_sink final : public array_sink {
 public:
  explicit hdf5_sink(const sink_request& r)
      : set_(r.path, r.dataset, {r.shape.begin(), r.shape.end()}, number_for(r.type), option) {
    shape = r.shape;
    type = r.type;
  }
  void write(const domain& d, std::span<const std::byte> from) override {
    const index3 count = d.shape();
    set_.write({d.first.begin(), d.first.end()}, {count.begin(), count.end()}, from.data());
  }
  void finish() override { set_.finish(); }

 private:
  hdf5::dataset_writer set_;
};

}  // namespace

std::unique_ptr<array_source> open_hdf5(const file_request& r) { return std::make_unique<hdf5_source>(r); }
std::unique_ptr<array_sink> make_hdf5(const sink_request& r) { return std::make_unique<hdf5_sink>(r); }

}  // namespace orrery::tool
