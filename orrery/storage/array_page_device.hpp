// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/storage/page_device.hpp>

namespace orrery::storage {

/// A device whose pages are boxes of elements, so that it can work on them where they are.
/// (Givelberg 2014, section 2.2.)
///
/// Problem: who needs a part of a page, or a page transposed, should not have to move the whole
/// page to another node first; and two clients that write different parts of one page must not undo
/// each other's work. So this is a page_device (a remote pointer to it is one to that, too) that
/// also reads, writes and transposes boxes of elements. A box is written while nobody else has the
/// page.
///
/// Made by spawn, either with a file of its own or beside an existing page_device, whose pages it
/// takes over without a copy when both are on one node. As for page_device in all else. Derive from
/// it, with an ORRERY_PROCESS line, to compute close to the data:
///
///     class my_device : public storage::array_page_device {
///      public:
///       using array_page_device::array_page_device;
///       double energy(std::uint64_t index);
///     };
///     ORRERY_PROCESS(my_device, energy);
class array_page_device : public page_device {
 public:
  /// `pages` pages of `shape` elements each.
  array_page_device(std::string file, std::uint64_t pages, const index3& shape, element_type type,
                    device_options options = {});
  /// The pages of an existing device. Throws std::invalid_argument if its pages are too small for
  /// that shape.
  array_page_device(const remote<page_device>& existing, const index3& shape, element_type type);

  /// The shape of each page.
  [[nodiscard]] index3 page_shape() const { return shape_; }
  /// The type of the elements.
  [[nodiscard]] element_type type() const { return type_; }

  /// The elements of the page; those of a box of them, places counted from the page's first
  /// element. Throws std::out_of_range for a box that is not inside of the page.
  [[nodiscard]] array_page read_elements(std::uint64_t index);
  /// As read_elements, of a box.
  [[nodiscard]] array_page read_box(std::uint64_t index, const domain& box);
  /// Writes the elements of a page of the device's shape and type; a box of them, of the part's
  /// shape, that begins at `first`: the other elements stay as they are. Throws
  /// std::invalid_argument for another type or shape, std::out_of_range for a box that is not
  /// inside.
  void write_elements(const array_page& p, std::uint64_t index);
  /// As write_elements, of a box.
  void write_box(const array_page& part, const index3& first, std::uint64_t index);

  /// The page with dimensions 1 and 3, or 2 and 3, in each other's place; and its inverse, for a
  /// page that is transposed.
  [[nodiscard]] array_page read_transpose13(std::uint64_t index);
  /// As read_transpose13, with dimensions 2 and 3.
  [[nodiscard]] array_page read_transpose23(std::uint64_t index);
  /// The inverse of read_transpose13.
  void write_transpose13(const array_page& p, std::uint64_t index);
  /// The inverse of read_transpose23.
  void write_transpose23(const array_page& p, std::uint64_t index);

 protected:
  /// Without a file, as page_device.
  array_page_device(std::uint64_t pages, const index3& shape, element_type type);

 private:
  void write_transposed(const array_page& p, std::uint64_t index, transposition t);
  void check_box(const domain& box, std::uint64_t index) const;
  void check_type(const array_page& p) const;

  index3 shape_;
  element_type type_;
};
ORRERY_PROCESS(array_page_device, page_shape, type, read_elements, read_box, write_elements, write_box,
               read_transpose13, read_transpose23, write_transpose13, write_transpose23);

}  // namespace orrery::storage
