// SPDX-License-Identifier: Apache-2.0
#include <orrery/storage/detail/strided_copy.hpp>
#include <orrery/wire/copy_bytes.hpp>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

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
      wire::copy_bytes(to + (i * a.to + j * b.to) * bytes, from + (i * a.from + j * b.from) * bytes, row_bytes);
}

// From so many bytes on the target is written past the caches: it would not stay there until
// somebody reads it, and a line that is written whole need not be read from memory first.
// (Transposing 4 MiB pages: 3.1 GB/s through the caches, 10.9 so and with the next tile fetched
// ahead.)
constexpr std::int64_t streamed_from = 256 << 10;

#if defined(__x86_64__)
template <std::size_t Bytes>
void stream(std::byte* to, const std::byte* from) noexcept {
  if constexpr (Bytes == 16) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to), _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  } else if constexpr (Bytes == 8) {
    long long x = 0;
    std::memcpy(&x, from, Bytes);
    _mm_stream_si64(reinterpret_cast<long long*>(to), x);
  } else {
    int x = 0;
    std::memcpy(&x, from, Bytes);
    _mm_stream_si32(reinterpret_cast<int*>(to), x);
  }
}
void end_of_stream() noexcept { _mm_sfence(); }  // such stores wait for no release
#else
template <std::size_t Bytes>
void stream(std::byte* to, const std::byte* from) noexcept {
  std::memcpy(to, from, Bytes);
}
void end_of_stream() noexcept {}
#endif

// w: contiguous where it is written; r: where it is read. Each tile goes through a buffer, so that
// memory sees only whole runs on both sides: strides of arrays are mostly powers of two, and then
// the lines of a tile would all want the same few places of the cache.
template <std::size_t Bytes>
class tiles {
 public:
  tiles(std::byte* to, const std::byte* from, side outer, side w, side r) noexcept
      : to_(to), from_(from), outer_(outer), w_(w), r_(r) {
    streamed_ = outer.n * w.n * r.n * bytes >= streamed_from && reinterpret_cast<std::uintptr_t>(to) % Bytes == 0;
  }

  void copy() noexcept {
    const bool runs = w_.to == 1 && r_.from == 1;
    for (std::int64_t o = 0; o < outer_.n; ++o)
      for (std::int64_t r0 = 0; r0 < r_.n; r0 += tile)
        for (std::int64_t w0 = 0; w0 < w_.n; w0 += tile) runs ? copy_runs(o, r0, w0) : copy_elements(o, r0, w0);
    if (runs && streamed_) end_of_stream();
  }

 private:
  static constexpr std::int64_t tile = Bytes == 4 ? 64 : 32;
  static constexpr auto bytes = static_cast<std::int64_t>(Bytes);
  // of the buffer: one element more, for the same reason
  static constexpr std::int64_t row = (tile + 1) * bytes;

  [[nodiscard]] const std::byte* source(std::int64_t o, std::int64_t r0, std::int64_t w0) const noexcept {
    return from_ + (o * outer_.from + r0 * r_.from + w0 * w_.from) * bytes;
  }
  [[nodiscard]] std::byte* target(std::int64_t o, std::int64_t r0, std::int64_t w0) const noexcept {
    return to_ + (o * outer_.to + r0 * r_.to + w0 * w_.to) * bytes;
  }
  // Where the next tile begins; null behind the last. Its runs are too short for the processor to
  // see them coming.
  [[nodiscard]] const std::byte* behind(std::int64_t o, std::int64_t r0, std::int64_t w0) const noexcept {
    if (w0 + tile < w_.n) return source(o, r0, w0 + tile);
    if (r0 + tile < r_.n) return source(o, r0 + tile, 0);
    return o + 1 < outer_.n ? source(o + 1, 0, 0) : nullptr;
  }

  void copy_elements(std::int64_t o, std::int64_t r0, std::int64_t w0) const noexcept {
    const std::byte* const from = source(o, r0, w0);
    std::byte* const to = target(o, r0, w0);
    for (std::int64_t i = 0; i < std::min(tile, r_.n - r0); ++i)
      for (std::int64_t j = 0; j < std::min(tile, w_.n - w0); ++j)
        std::memcpy(to + (i * r_.to + j * w_.to) * bytes, from + (i * r_.from + j * w_.from) * bytes, Bytes);
  }

  void copy_runs(std::int64_t o, std::int64_t r0, std::int64_t w0) noexcept {
    const std::int64_t rows = std::min(tile, r_.n - r0);
    const std::int64_t columns = std::min(tile, w_.n - w0);
    const std::byte* from = source(o, r0, w0);
    const std::byte* next = behind(o, r0, w0);
    for (std::int64_t j = 0; j < columns; ++j, from += w_.from * bytes) {
      if (next != nullptr) {  // a hint: no matter if it is shorter there
        for (std::int64_t b = 0; b < rows * bytes; b += 64) __builtin_prefetch(next + b);
        next += w_.from * bytes;
      }
      std::memcpy(buffer_.data() + j * row, from, static_cast<std::size_t>(rows * bytes));
    }
    std::byte* const to = target(o, r0, w0);
    for (std::int64_t i = 0; i < rows; ++i) {
      std::byte* at = to + i * r_.to * bytes;
      const std::byte* element = buffer_.data() + i * bytes;
      if (streamed_) {
        for (std::int64_t j = 0; j < columns; ++j, at += Bytes, element += row) stream<Bytes>(at, element);
      } else {
        for (std::int64_t j = 0; j < columns; ++j, at += Bytes, element += row) std::memcpy(at, element, Bytes);
      }
    }
  }

  std::byte* to_;
  const std::byte* from_;
  side outer_, w_, r_;
  bool streamed_;
  std::array<std::byte, tile * row> buffer_;
};

void copy_tiles(std::byte* to, const std::byte* from, side outer, side w, side r, std::size_t bytes) noexcept {
  switch (bytes) {
    case 4:
      return tiles<4>(to, from, outer, w, r).copy();
    case 8:
      return tiles<8>(to, from, outer, w, r).copy();
    default:
      assert(bytes == 16);
      return tiles<16>(to, from, outer, w, r).copy();
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
