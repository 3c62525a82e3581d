// SPDX-License-Identifier: Apache-2.0
#include "nifti_header.hpp"

#include "array_file.hpp"

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>
#include <nifti2_io.h>

namespace orrery::tool {
namespace {

constexpr std::int64_t most_bytes = std::int64_t{1} << 60;

// What both versions say of the volume.
struct volume {
  std::vector<std::int64_t> dim;
  double offset = 0;
};

template <class T>
T swapped(T value, bool swap) {
  if (swap) nifti_swap_Nbytes(1, sizeof value, &value);
  return value;
}

template <class Header>
volume volume_of(const std::vector<std::byte>& bytes, bool swap) {
  Header h;
  std::memcpy(&h, bytes.data(), sizeof h);
  volume v;
  for (const auto n : h.dim) v.dim.push_back(swapped(n, swap));
  v.offset = static_cast<double>(swapped(h.vox_offset, swap));
  return v;
}

// Nothing: it is another format, or cut off.
std::optional<volume> read_volume(const std::string& file) {
  std::vector<std::byte> bytes(sizeof(nifti_2_header));
  znzFile f = znzopen(file.c_str(), "rb", nifti_is_gzfile(file.c_str()));
  if (f == nullptr) return {};
  const std::size_t got = znzread(bytes.data(), 1, bytes.size(), f);
  (void)Xznzclose(&f);
  if (got > bytes.size())  // -1 of the library for compressed files
    throw std::invalid_argument(fmt::format("{} cannot be decompressed: it was cut off or damaged", file));
  bytes.resize(got);
  std::int32_t size = 0;
  if (bytes.size() < sizeof(nifti_1_header)) return {};
  std::memcpy(&size, bytes.data(), sizeof size);
  for (const bool swap : {false, true}) {
    const std::int32_t said = swapped(size, swap);
    if (said == static_cast<std::int32_t>(sizeof(nifti_1_header))) return volume_of<nifti_1_header>(bytes, swap);
    if (said == static_cast<std::int32_t>(sizeof(nifti_2_header)) && bytes.size() == sizeof(nifti_2_header))
      return volume_of<nifti_2_header>(bytes, swap);
  }
  return {};
}

}  // namespace

void check_nifti_header(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> name(nifti_findhdrname(path.c_str()), &std::free);
  if (name == nullptr) return;
  require_regular(name.get());
  const std::optional<volume> v = read_volume(name.get());
  if (!v) return;
  const auto refuse = [&](const std::string& why) {
    throw std::invalid_argument(fmt::format("{} cannot be imported: in its header {}", path, why));
  };
  const std::int64_t n = v->dim[0];
  if (n < 1 || n > 7) refuse(fmt::format("the number of dimensions is {}, and can be 1 to 7", n));
  std::int64_t bytes = 32;  // of the largest number
  for (std::int64_t k = 1; k <= n; ++k) {
    const std::int64_t side = v->dim[static_cast<std::size_t>(k)];
    if (side < 0) refuse(fmt::format("side {} is {}", k, side));
    if (side > 0 && (__builtin_mul_overflow(bytes, side, &bytes) || bytes > most_bytes))
      refuse(fmt::format("side {} is {}, so that there are more voxels than any file can have", k, side));
  }
  if (!(v->offset >= 0 && v->offset <= static_cast<double>(most_bytes)))
    refuse(fmt::format("the volume begins at {}", v->offset));
}

}  // namespace orrery::tool
