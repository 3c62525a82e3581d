// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

namespace orrery::storage {

/// Three numbers, one for each dimension: a shape, a place or strides. The last dimension is the
/// one that is contiguous in memory.
using index3 = std::array<std::int64_t, 3>;

/// The three dimensions in another order: a permutation for copies and domains.
enum class transposition : std::uint8_t {
  none,
  t13,  ///< dimensions 1 and 3 change places
  t23,  ///< dimensions 2 and 3 change places
};

[[nodiscard]] constexpr index3 transposed(index3 x, transposition t) noexcept {
  if (t == transposition::t13) std::swap(x[0], x[2]);
  if (t == transposition::t23) std::swap(x[1], x[2]);
  return x;
}
[[nodiscard]] constexpr std::int64_t product(const index3& x) noexcept { return x[0] * x[1] * x[2]; }

/// A box of places: all (i1, i2, i3) with first <= i < last in each dimension. (Givelberg 2014,
/// section 4.1; the paper's bounds are inclusive, these are half open as everywhere in C++.)
///
/// A value; travels as its bytes. Empty as soon as one of its sides is.
struct domain {
  index3 first{};
  index3 last{};

  /// The box of all places of an array of that shape.
  [[nodiscard]] static constexpr domain of_shape(const index3& shape) noexcept { return {{0, 0, 0}, shape}; }

  /// Its sides; 0 where it is empty.
  [[nodiscard]] constexpr index3 shape() const noexcept {
    return {std::max<std::int64_t>(last[0] - first[0], 0), std::max<std::int64_t>(last[1] - first[1], 0),
            std::max<std::int64_t>(last[2] - first[2], 0)};
  }
  /// How many places it has.
  [[nodiscard]] constexpr std::int64_t size() const noexcept { return product(shape()); }
  [[nodiscard]] constexpr bool empty() const noexcept { return size() == 0; }
  /// True if the element belongs to the domain.
  [[nodiscard]] constexpr bool contains(const index3& i) const noexcept {
    for (int k = 0; k < 3; ++k)
      if (i[k] < first[k] || i[k] >= last[k]) return false;
    return true;
  }
  /// True if all places of the other are here; the empty one is everywhere.
  [[nodiscard]] constexpr bool contains(const domain& d) const noexcept {
    if (d.empty()) return true;
    for (int k = 0; k < 3; ++k)
      if (d.first[k] < first[k] || d.last[k] > last[k]) return false;
    return true;
  }
  /// The places that are in both.
  [[nodiscard]] constexpr domain operator&(const domain& d) const noexcept {
    domain r;
    for (int k = 0; k < 3; ++k) {
      r.first[k] = std::max(first[k], d.first[k]);
      r.last[k] = std::max(r.first[k], std::min(last[k], d.last[k]));
    }
    return r;
  }
  /// The same box elsewhere: as seen from `origin`.
  [[nodiscard]] constexpr domain relative_to(const index3& origin) const noexcept {
    domain r = *this;
    for (int k = 0; k < 3; ++k) {
      r.first[k] -= origin[k];
      r.last[k] -= origin[k];
    }
    return r;
  }
  friend constexpr bool operator==(const domain&, const domain&) noexcept = default;
};

[[nodiscard]] constexpr domain transposed(const domain& d, transposition t) noexcept {
  return {transposed(d.first, t), transposed(d.last, t)};
}

/// "512 x 512 x 300"
[[nodiscard]] std::string to_string(const index3& shape);
/// "[0, 128) x [0, 512) x [7, 8)"
[[nodiscard]] std::string to_string(const domain& d);

/// How an array of any shape is cut into pages of any shape: page (p1, p2, p3) covers the elements
/// from p * page_shape on. Where the page shape does not divide the array's, pages at the upper
/// edges hang over; on disk they are as large as all others.
///
/// A value; travels as its bytes. Both shapes are positive (see `checked`).
struct page_grid {
  index3 array_shape{};
  index3 page_shape{};

  /// Throws std::invalid_argument, which names the shape, if a side is not positive or the array
  /// has more than 2^59 elements (so that its bytes, and those of its pages, can be counted).
  [[nodiscard]] static page_grid checked(const index3& array_shape, const index3& page_shape);

  /// Pages in each dimension.
  [[nodiscard]] constexpr index3 pages() const noexcept {
    index3 r{};
    for (int k = 0; k < 3; ++k) r[k] = (array_shape[k] + page_shape[k] - 1) / page_shape[k];
    return r;
  }
  /// The number of pages.
  [[nodiscard]] constexpr std::int64_t page_count() const noexcept { return product(pages()); }
  /// The elements of a page, cut at the array's edges.
  [[nodiscard]] constexpr domain elements_of(const index3& page) const noexcept {
    domain r;
    for (int k = 0; k < 3; ++k) {
      r.first[k] = page[k] * page_shape[k];
      r.last[k] = std::min(r.first[k] + page_shape[k], array_shape[k]);
    }
    return r;
  }
  /// The page that an element is on.
  [[nodiscard]] constexpr index3 page_of(const index3& i) const noexcept {
    return {i[0] / page_shape[0], i[1] / page_shape[1], i[2] / page_shape[2]};
  }
  /// The pages, as a box of page indices, that have elements of the domain.
  [[nodiscard]] constexpr domain pages_of(const domain& d) const noexcept {
    if (d.empty()) return {};
    domain r;
    r.first = page_of(d.first);
    r.last = page_of({d.last[0] - 1, d.last[1] - 1, d.last[2] - 1});
    for (auto& x : r.last) ++x;
    return r;
  }
  /// The place of an index in the order in which pages are counted: the third dimension runs
  /// fastest.
  [[nodiscard]] constexpr std::int64_t number_of(const index3& page) const noexcept {
    const index3 n = pages();
    return (page[0] * n[1] + page[1]) * n[2] + page[2];
  }
  /// The page of that number: the inverse of counting them, the third dimension running fastest.
  [[nodiscard]] constexpr index3 page_at(std::int64_t number) const noexcept {
    const index3 n = pages();
    return {number / (n[1] * n[2]), number / n[2] % n[1], number % n[2]};
  }
  friend constexpr bool operator==(const page_grid&, const page_grid&) noexcept = default;
};

/// Calls f(index3) for every place of the box, the third dimension fastest.
template <class F>
constexpr void for_each_place(const domain& d, F&& f) {
  for (std::int64_t a = d.first[0]; a < d.last[0]; ++a)
    for (std::int64_t b = d.first[1]; b < d.last[1]; ++b)
      for (std::int64_t c = d.first[2]; c < d.last[2]; ++c) f(index3{a, b, c});
}

/// Calls f(domain) for boxes of that shape that together are `d`, cut at its upper edges; the third
/// dimension fastest.
template <class F>
constexpr void for_each_box(const domain& d, const index3& shape, F&& f) {
  const page_grid boxes{d.shape(), shape};
  for_each_place(domain::of_shape(boxes.pages()), [&](const index3& b) {
    f(boxes.elements_of(b).relative_to({-d.first[0], -d.first[1], -d.first[2]}));
  });
}

}  // namespace orrery::storage
