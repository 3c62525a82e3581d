// SPDX-License-Identifier: Apache-2.0
#include <orrery/storage/strided_copy.hpp>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <cstring>

namespace orrery::storage {
namespace {

struct side {
  std::int64_t to;
  std::int64_t from;
  std::int64_t n;
};

void copy_rows(std::byte* to, const std::byte* from, side a, side b, std::size_t row_bytes, std::size_t size) noexcept {
  const auto bytes = static_cast<std::int64_t>(size);
  for (std::int64_t i = 0; i < a.n; ++i)
    for (std::int64_t j = 0; j < b.n; ++j)
      std::memcpy(to + (i * a.to + j * b.to) * bytes, from + (i * a.from + j * b.from) * bytes, row_bytes);
}

// w: contiguous where it is written; r: where it is read. Each tile goes through a buffer, so that memory sees only whole runs on both
// sides: strides of arrays are mostly powers of two, and then the lines of a tile would all want the same few places of the cache.
template <std::size_t Bytes>
void copy_tiles(std::byte* to, const std::byte* from, side outer, side w, side r) noexcept {
  constexpr std::int64_t tile = Bytes == 4 ? 64 : 32;
  constexpr auto bytes = static_cast<std::int64_t>(Bytes);
  constexpr std::int64_t row = (tile + 1) * bytes;  // of the buffer: one element more, for the same reason
  std::array<std::byte, tile * row> buffer;
  const bool runs = w.to == 1 && r.from == 1;
  for (std::int64_t o = 0; o < outer.n; ++o) {
    for (std::int64_t r0 = 0; r0 < r.n; r0 += tile) {
      const std::int64_t rows = std::min(tile, r.n - r0);
      for (std::int64_t w0 = 0; w0 < w.n; w0 += tile) {
        const std::int64_t columns = std::min(tile, w.n - w0);
        const std::byte* const source = from + (o * outer.from + r0 * r.from + w0 * w.from) * bytes;
        std::byte* const target = to + (o * outer.to + r0 * r.to + w0 * w.to) * bytes;
        if (!runs) {
          for (std::int64_t i = 0; i < rows; ++i)
            for (std::int64_t j = 0; j < columns; ++j)
              std::memcpy(target + (i * r.to + j * w.to) * bytes, source + (i * r.from + j * w.from) * bytes, Bytes);
          continue;
        }
        for (std::int64_t j = 0; j < columns; ++j)
          std::memcpy(buffer.data() + j * row, source + j * w.from * bytes, static_cast<std::size_t>(rows * bytes));
        for (std::int64_t i = 0; i < rows; ++i) {
          std::byte* at = target + i * r.to * bytes;
          const std::byte* element = buffer.data() + i * bytes;
          for (std::int64_t j = 0; j < columns; ++j, at += Bytes, element += row) std::memcpy(at, element, Bytes);
        }
      }
    }
  }
}

void copy_tiles(std::byte* to, const std::byte* from, side outer, side w, side r, std::size_t bytes) noexcept {
  switch (bytes) {
    case 4:
      return copy_tiles<4>(to, from, outer, w, r);
    case 8:
      return copy_tiles<8>(to, from, outer, w, r);
    default:
      assert(bytes == 16);
      return copy_tiles<16>(to, from, outer, w, r);
  }
}

}  // namespace

void copy_box(std::byte* to, const index3& to_strides, const std::byte* from, const index3& from_strides,
              const index3& shape, std::size_t element_bytes) noexcept {
  if (product(shape) == 0) return;
  side s[3];
  for (int k = 0; k < 3; ++k) s[k] = {to_strides[k], from_strides[k], shape[k]};
  if (s[2].to == 1 && s[2].from == 1) {
    // Dimensions that follow each other without a gap, on both sides, are one.
    for (int k = 1; k >= 0; --k) {
      if (s[k].to != s[2].n || s[k].from != s[2].n) break;
      s[2].n *= s[k].n;
      s[k].n = 1;
    }
    copy_rows(to, from, s[0], s[1], static_cast<std::size_t>(s[2].n) * element_bytes, element_bytes);
    return;
  }
  int w = 2;
  int r = 2;
  for (int k = 0; k < 3; ++k) {
    if (s[k].to == 1) w = k;
    if (s[k].from == 1) r = k;
  }
  if (r == w) r = w == 2 ? 1 : 2;  // no dimension is contiguous on both sides: any other will do
  copy_tiles(to, from, s[3 - w - r], s[w], s[r], element_bytes);
}

}  // namespace orrery::storage
