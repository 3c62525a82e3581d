// SPDX-License-Identifier: Apache-2.0
#include "array_file.hpp"
#include "commands.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <ranges>
#include <stdexcept>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

namespace orrery::tool {
namespace {

using namespace orrery::storage;

std::int64_t elements_within(std::size_t budget, const array_file& file) {
  return static_cast<std::int64_t>(budget / size_of(file.type));
}

// Of the array and `n` of dimension k, at least `least`: as much as is there, in whole multiples of `step` if it is more than one.
std::int64_t side_of(std::int64_t n, std::int64_t step, std::int64_t all) {
  if (n >= all) return all;
  return n > step ? n - n % step : n;
}

// Whole runs, then whole planes, of the file: what comes after each other in it.
index3 block_in_sequence(const array_file& file, const index3& page_shape, std::int64_t most) {
  index3 block{1, 1, 1};
  for (const int k : file.layout.order) {
    block[k] = side_of(std::max<std::int64_t>(most / product(block), 1), page_shape[k], file.shape[k]);
    if (block[k] < file.shape[k]) break;
  }
  return block;
}

index3 block_anywhere(const array_file& file, const index3& page_shape, std::int64_t most) {
  const index3& unit = file.layout.unit;
  index3 block;
  for (int k = 0; k < 3; ++k) block[k] = std::min(std::max(page_shape[k], unit[k]), file.shape[k]);
  if (product(block) > most && product(unit) > 1)  // parts of pages then, rather than a chunk again and again
    for (int k = 0; k < 3; ++k) block[k] = std::min(unit[k], file.shape[k]);
  for (const int k : file.layout.order)
    block[k] = std::min(block[k] * std::max<std::int64_t>(most / product(block), 1), file.shape[k]);
  return block;
}

}  // namespace

void for_each_block(const array_file& file, const index3& page_shape, std::size_t budget,
                    const std::function<void(const domain&)>& f) {
  const std::int64_t most = elements_within(budget, file);
  const index3 block =
      file.layout.in_sequence ? block_in_sequence(file, page_shape, most) : block_anywhere(file, page_shape, most);
  const auto [fast, middle, slow] = file.layout.order;
  index3 at{};
  for (at[slow] = 0; at[slow] < file.shape[slow]; at[slow] += block[slow])
    for (at[middle] = 0; at[middle] < file.shape[middle]; at[middle] += block[middle])
      for (at[fast] = 0; at[fast] < file.shape[fast]; at[fast] += block[fast]) {
        domain d{at, at};
        for (int k = 0; k < 3; ++k) d.last[k] = std::min(at[k] + block[k], file.shape[k]);
        f(d);
      }
}

index3 three_sides(std::span<const std::int64_t> sides, bool trailing) {
  const auto bad = [&](std::string_view why) {
    throw std::invalid_argument(fmt::format("it has {} dimension{} ({}), and {}", sides.size(),
                                            sides.size() == 1 ? "" : "s", fmt::join(sides, " x "), why));
  };
  if (std::ranges::any_of(sides, [](std::int64_t n) { return n <= 0; })) bad("so no elements");
  if (sides.empty()) bad("arrays here have 3: it is a single number");
  while (sides.size() > 3 && sides.back() == 1) sides = sides.first(sides.size() - 1);
  if (sides.size() > 3) bad("arrays here have 3: choose a part, or reshape it, and import that");
  index3 shape{1, 1, 1};
  std::ranges::copy(sides, shape.begin() + (trailing ? 0 : 3 - static_cast<std::ptrdiff_t>(sides.size())));
  return shape;
}

bool ends_in(const std::string& text, std::initializer_list<std::string_view> ends) {
  return std::ranges::any_of(ends, [&](std::string_view e) {
    return text.size() >= e.size() && strncasecmp(text.data() + text.size() - e.size(), e.data(), e.size()) == 0;
  });
}

namespace {
bool is_hdf5(const std::string& path) { return ends_in(path, {".h5", ".hdf5", ".hdf", ".he5"}); }
bool is_nifti(const std::string& path) {
  return ends_in(path, {".nii", ".nii.gz", ".hdr", ".hdr.gz", ".img", ".img.gz"});
}
}  // namespace

void require_regular(const std::string& path) {
  struct stat st{};
  if (::stat(path.c_str(), &st) == 0 && !S_ISREG(st.st_mode))
    throw std::invalid_argument(fmt::format(
        "{} is no regular file: what is imported is read at many places, so write it to a file first", path));
}

std::int64_t checked_elements(const index3& shape, std::size_t element_bytes) {
  std::int64_t bytes = static_cast<std::int64_t>(element_bytes);
  for (const std::int64_t n : shape)
    if (n <= 0 || __builtin_mul_overflow(bytes, n, &bytes))
      throw std::invalid_argument(fmt::format("an array of {} cannot be: it would have more than 2^63 bytes, or none",
                                              storage::to_string(shape)));
  return bytes / static_cast<std::int64_t>(element_bytes);
}

std::unique_ptr<array_source> open_source(const file_request& r) {
  if (!is_hdf5(r.path) && !r.dataset.empty())
    throw command_error(fmt::format("{} is no HDF5 file by its name: it has no --dataset", r.path));
  if (access(r.path.c_str(), R_OK) != 0)
    throw std::system_error(errno, std::system_category(), fmt::format("cannot read {}", r.path));
  require_regular(r.path);
  if (is_hdf5(r.path)) return open_hdf5(r);
  if (is_nifti(r.path)) return open_nifti(r);
  return open_flat(r);
}
std::unique_ptr<array_sink> make_sink(const sink_request& r) {
  if (is_hdf5(r.path)) return make_hdf5(r);
  if (!r.dataset.empty())
    throw command_error(fmt::format("{} is no HDF5 file by its name: it has no --dataset", r.path));
  if (is_nifti(r.path)) return make_nifti(r);
  return make_flat(r);
}

}  // namespace orrery::tool
