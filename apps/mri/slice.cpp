// SPDX-License-Identifier: Apache-2.0
#include "slice.hpp"

#include <orrery/orrery.hpp>
#include <orrery/storage/storage.hpp>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include <png.h>

namespace mri {

namespace storage = orrery::storage;

namespace {

template <class T>
std::vector<double> magnitudes(const storage::array& a, const storage::domain& plane) {
  std::vector<T> values(static_cast<std::size_t>(plane.size()));
  a.read(plane, std::span<T>(values));
  std::vector<double> v(values.size());
  std::ranges::transform(values, v.begin(), [](const T& x) { return static_cast<double>(std::abs(x)); });
  return v;
}

std::vector<double> magnitudes(const storage::array& a, const storage::domain& plane) {
  switch (a.type()) {
    case storage::element_type::float32:
      return magnitudes<float>(a, plane);
    case storage::element_type::float64:
      return magnitudes<double>(a, plane);
    case storage::element_type::complex64:
      return magnitudes<std::complex<float>>(a, plane);
    default:
      return magnitudes<std::complex<double>>(a, plane);
  }
}

}  // namespace

void write_slice(const std::string& set, int dimension, const std::string& file) {
  if (dimension < 1 || dimension > 3) throw std::invalid_argument("dimensions are 1, 2 and 3");
  const auto data = orrery::spawn<storage::data_set>(orrery::here(), set);
  const storage::array a = data->contents();
  storage::domain plane = a.whole();
  const auto d = static_cast<std::size_t>(dimension - 1);
  plane.first[d] = a.shape()[d] / 2;
  plane.last[d] = plane.first[d] + 1;
  const auto values = magnitudes(a, plane);
  destroy(data);

  const auto columns = static_cast<std::size_t>(a.shape()[d == 0 ? 1 : 0]);
  const auto rows = values.size() / columns;
  const double most = std::max(*std::ranges::max_element(values), 1e-300);
  std::vector<std::uint8_t> grey(values.size());
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c)
      grey[(rows - 1 - r) * columns + c] = static_cast<std::uint8_t>(std::lround(255 * values[c * rows + r] / most));

  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(columns);
  image.height = static_cast<png_uint_32>(rows);
  image.format = PNG_FORMAT_GRAY;
  if (png_image_write_to_file(&image, file.c_str(), 0, grey.data(), 0, nullptr) == 0)
    throw std::runtime_error(file + ": " + std::string(image.message));
}

}  // namespace mri
