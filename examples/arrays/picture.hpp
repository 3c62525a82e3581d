// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <png.h>

// Pictures of the example programs, as PNG.

namespace examples {

using colour = std::array<std::uint8_t, 3>;

/// A picture that is painted pixel by pixel and then written to a file. (0, 0) is the upper left.
class picture {
 public:
  picture(std::size_t width, std::size_t height, colour background = {255, 255, 255})
      : width_(width), height_(height), pixels_(width * height, background) {}
  [[nodiscard]] std::size_t width() const noexcept { return width_; }
  [[nodiscard]] std::size_t height() const noexcept { return height_; }
  /// Points outside are not painted.
  void set(std::ptrdiff_t x, std::ptrdiff_t y, colour c) noexcept {
    if (x >= 0 && y >= 0 && static_cast<std::size_t>(x) < width_ && static_cast<std::size_t>(y) < height_)
      pixels_[static_cast<std::size_t>(y) * width_ + static_cast<std::size_t>(x)] = c;
  }
  /// The pixels [x, x + w) x [y, y + h).
  void fill(std::ptrdiff_t x, std::ptrdiff_t y, std::ptrdiff_t w, std::ptrdiff_t h, colour c) noexcept {
    for (std::ptrdiff_t j = y; j < y + h; ++j)
      for (std::ptrdiff_t i = x; i < x + w; ++i) set(i, j, c);
  }
  /// The upper and left edges of that box: boxes side by side have one line between them.
  void edge(std::ptrdiff_t x, std::ptrdiff_t y, std::ptrdiff_t w, std::ptrdiff_t h, colour c) noexcept {
    fill(x, y, w, 1, c);
    fill(x, y, 1, h, c);
  }
  /// Throws std::runtime_error if the file cannot be written.
  void write(const std::string& path) const {
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    image.width = static_cast<png_uint_32>(width_);
    image.height = static_cast<png_uint_32>(height_);
    image.format = PNG_FORMAT_RGB;
    if (png_image_write_to_file(&image, path.c_str(), 0, pixels_.data(), 0, nullptr) == 0)
      throw std::runtime_error(path + ": " + std::string(image.message));
  }

 private:
  std::size_t width_;
  std::size_t height_;
  std::vector<colour> pixels_;
};

/// A colour between two others.
[[nodiscard]] inline colour mix(colour a, colour b, double share) noexcept {
  colour c{};
  for (std::size_t i = 0; i < c.size(); ++i)
    c[i] = static_cast<std::uint8_t>(std::lround(a[i] + share * (b[i] - a[i])));
  return c;
}

/// Values from 0 to 1, from dark violet to yellow: some points of matplotlib's "inferno" and what
/// lies between them.
[[nodiscard]] inline colour heat(double value) noexcept {
  static constexpr std::array<colour, 6> points{
      {{0, 0, 4}, {66, 10, 104}, {147, 38, 103}, {221, 81, 58}, {252, 165, 10}, {252, 255, 164}}};
  const double at = std::clamp(value, 0.0, 1.0) * (points.size() - 1);
  const auto i = std::min(static_cast<std::size_t>(at), points.size() - 2);
  return mix(points[i], points[i + 1], at - static_cast<double>(i));
}

/// A colour for each PE: those of ColorBrewer's "Set2", again and again.
[[nodiscard]] inline colour of_pe(std::uint32_t pe) noexcept {
  static constexpr std::array<colour, 8> points{{{102, 194, 165},
                                                 {252, 141, 98},
                                                 {141, 160, 203},
                                                 {231, 138, 195},
                                                 {166, 216, 84},
                                                 {255, 217, 47},
                                                 {229, 196, 148},
                                                 {179, 179, 179}}};
  return points[pe % points.size()];
}

}  // namespace examples
