// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/storage/array.hpp>

#include <cstddef>
#include <vector>

namespace orrery::storage {

/// The same elements in another type of the same precision: real ones get an imaginary part of 0,
/// complex ones lose theirs. The page itself if the types are the same. Throws
/// std::invalid_argument for types of different precision.
[[nodiscard]] page converted(page p, element_type from, element_type to);

/// A box of whole pages of an array, in memory: what a computation works on that is laid out page
/// by page.
///
/// Problem: a slab or a line of pages is read, computed on and written; copying it into one buffer
/// and out again costs as much as the drive takes to fill it. So the block keeps the pages as they
/// came, on one node the very memory that the drive has filled, and gives and takes any box of
/// their elements with any strides: a computation copies a box that stays in its cache, works
/// there, and copies it back. Pages that are written are given away.
///
/// Owned by one process. Reading and writing park; they throw what the devices throw.
///
///     page_block slab(a.grid(), {{0, 0, 0}, {1, pages[1], pages[2]}}, element_type::complex128);
///     slab.read(a, 16);
///     const auto bytes = std::as_writable_bytes(std::span(buffer));
///     slab.copy_out(box, bytes.data(), strides_of(box.shape()));
///     ...
///     slab.write(b, 16);
class page_block {
 public:
  /// Pages `pages` of an array of that grid, whose elements are here of type `type`; without
  /// contents until `read`.
  page_block() = default;
  page_block(const page_grid& grid, const domain& pages, element_type type)
      : grid_(grid), places_(pages), type_(type) {}

  /// Which pages these are, and their elements.
  [[nodiscard]] const domain& places() const noexcept { return places_; }
  /// The elements of the pages, as a domain of the array.
  [[nodiscard]] domain elements() const noexcept;
  /// The type of the elements.
  [[nodiscard]] element_type type() const noexcept { return type_; }

  /// Reads all pages, at most `window` at a time, and converts them. The array has the block's
  /// grid.
  void read(const array& from, std::size_t window);
  /// Writes all pages, converted to the array's type, and has none afterwards.
  void write(const array& to, std::size_t window);
  /// The same, and meanwhile reads another block: one page for each that has been written, so that
  /// both take no more memory than one of them. The drives read and write at the same time.
  void write_and_read(const array& to, page_block& next, const array& from, std::size_t window);
  /// Makes each page this block's only, by a copy if somebody else has it, too. Then several
  /// threads may use copy_in for boxes that have no element in common.
  void make_own();

  /// Copies the elements of a box, which is inside of elements(), to memory where a step along
  /// dimension d is strides[d] elements; and from there.
  void copy_out(const domain& box, std::byte* to, const index3& strides) const;
  /// The inverse of copy_out.
  void copy_in(const domain& box, const std::byte* from, const index3& strides);

 private:
  template <class F>
  void each_part(const domain& box, const index3& strides, F&& f) const;

  page_grid grid_;
  domain places_;
  element_type type_ = element_type::complex128;
  std::vector<page> pages_;
};

}  // namespace orrery::storage
