// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/future.hpp>
#include <orrery/process/remote.hpp>
#include <orrery/storage/array_page_device.hpp>
#include <orrery/storage/page_map.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace orrery::storage {

/// A three-dimensional array that lies on devices and may be far larger than memory. (Givelberg
/// 2014, section 4.1.)
///
/// Problem: a computation thinks in boxes of an array; drives work in pages, many at once, on
/// several devices, and several clients want their boxes at the same time. The paper's Array is a
/// process; everything would go through it. So an array here is a small value, as a remote pointer
/// is: shape, page shape, type, page map and the remote pointers of its devices. It is copied and
/// sent to any number of processes, and each reads and writes by itself: it starts the transfers of
/// all pages of its box, a window of them at a time, and copies between pages and its own memory as
/// they arrive, once, transposing in the same step. On one node that is the only copy between the
/// drive and the caller's memory.
///
/// It owns nothing: the devices live on when it is gone (a data_set owns them), and calls throw
/// process_gone when they do not. Use an array, and copies of it, from any process at once. Two
/// clients may write different elements of one page at the same time; who writes the same elements
/// decides nothing but that each of them is one of the values written.
///
/// All transfers may park. They throw std::invalid_argument (another type, a buffer of another
/// size), std::out_of_range (a domain that is not inside of the array), and what the devices throw;
/// a write is then done in part. A write has returned when the devices have the pages; call flush()
/// to have them on the drives.
///
///     std::vector<std::complex<double>> line(n3);
///     a.read(storage::domain{{7, 8, 0}, {8, 9, n3}}, std::span(line));
class array {
 public:
  /// Empty: to be received or assigned into.
  array() = default;
  /// Throws std::invalid_argument if the map is not made for the grid's pages or the number of
  /// devices.
  array(const page_grid& grid, element_type type, any_page_map map, std::vector<remote<array_page_device>> devices);

  /// The number of elements along each dimension.
  [[nodiscard]] const index3& shape() const noexcept { return grid_.array_shape; }
  /// How the array falls into pages.
  [[nodiscard]] const page_grid& grid() const noexcept { return grid_; }
  /// The type of its elements.
  [[nodiscard]] element_type type() const noexcept { return type_; }
  /// Which page lies where.
  [[nodiscard]] const page_map& map() const noexcept { return *map_; }
  /// The devices, in the order of the map's numbers.
  [[nodiscard]] const std::vector<remote<array_page_device>>& devices() const noexcept { return devices_; }
  /// Other devices for the same pages, `on_nodes[n]` on node n: processes there use these.
  void set_devices_on_nodes(std::vector<std::vector<remote<array_page_device>>> on_nodes) {
    on_nodes_ = std::move(on_nodes);
  }
  /// Those of that node; devices() if it has none of its own.
  [[nodiscard]] const std::vector<remote<array_page_device>>& devices_of(std::uint32_t node) const noexcept {
    return node < on_nodes_.size() ? on_nodes_[node] : devices_;
  }
  /// All of it.
  [[nodiscard]] domain whole() const noexcept { return domain::of_shape(shape()); }

  /// Fills `into`, of exactly d.size() elements, with the elements of the domain, the third
  /// dimension running fastest.
  template <element T>
  void read(const domain& d, std::span<T> into) const {
    read_bytes(d, transposition::none, std::as_writable_bytes(into), element_type_of<T>);
  }
  /// The same with dimensions 1 and 3 (2 and 3) in each other's place: element (i, j, k) of the
  /// domain is element (k, j, i) ((i, k, j)) of `into`, whose shape is the domain's, transposed.
  /// For lines along another dimension than the third.
  template <element T>
  void read_transpose13(const domain& d, std::span<T> into) const {
    read_bytes(d, transposition::t13, std::as_writable_bytes(into), element_type_of<T>);
  }
  /// As read_transpose13, with dimensions 2 and 3.
  template <element T>
  void read_transpose23(const domain& d, std::span<T> into) const {
    read_bytes(d, transposition::t23, std::as_writable_bytes(into), element_type_of<T>);
  }
  /// The reverse of the reads: writes the elements of the domain.
  template <element T>
  void write(const domain& d, std::span<const T> from) const {
    write_bytes(d, transposition::none, std::as_bytes(from), element_type_of<T>);
  }
  /// As read_transpose13, to write.
  template <element T>
  void write_transpose13(const domain& d, std::span<const T> from) const {
    write_bytes(d, transposition::t13, std::as_bytes(from), element_type_of<T>);
  }
  /// As read_transpose23, to write.
  template <element T>
  void write_transpose23(const domain& d, std::span<const T> from) const {
    write_bytes(d, transposition::t23, std::as_bytes(from), element_type_of<T>);
  }

  /// The same for elements whose type is known at run time only.
  void read_bytes(const domain& d, transposition t, std::span<std::byte> into, element_type type) const;
  /// As write, for elements whose type is known at run time only.
  void write_bytes(const domain& d, transposition t, std::span<const std::byte> from, element_type type) const;
  /// As read, into a page of the domain's shape and the array's type.
  [[nodiscard]] array_page read_page(const domain& d, transposition t = transposition::none) const;
  /// As write, of a page of the domain's shape.
  void write_page(const domain& d, const array_page& p, transposition t = transposition::none) const;

  /// Begins to read (write) one whole page of the grid, as it lies on disk: its elements of the
  /// page shape, edges that hang over included. On one node nothing is copied: the page that
  /// arrives is what the drive has filled, and a page that is written goes to the drive as it is.
  /// For computations that are laid out page by page. Throws std::out_of_range; all else is thrown
  /// by the future.
  [[nodiscard]] future<page> start_read_whole(const index3& place) const;
  /// The reverse of start_read_whole.
  [[nodiscard]] future<void> start_write_whole(const page& p, const index3& place) const;

  /// Tells the devices that the domain will be read soon; does not wait for the drives. Hints for
  /// which a device has no place in its cache are dropped. (Section 4.3.)
  void read_into_cache(const domain& d) const;
  /// Returns when everything written so far is on the drives; throws errors of writes that nobody
  /// saw.
  void flush() const;

  /// At most so many bytes of pages are on their way between the devices and one read or write; 64
  /// MiB at first, and never less than two pages. A property of this copy of the array.
  void set_window(std::uint64_t bytes) noexcept { window_bytes_ = bytes; }

  template <class A>
  void serialize(A& a) {
    a & grid_.array_shape & grid_.page_shape & type_ & map_ & devices_ & on_nodes_ & window_bytes_;
  }

 private:
  [[nodiscard]] std::size_t window() const noexcept;
  [[nodiscard]] const remote<array_page_device>& device(const page_address& at) const;
  void check(const domain& d, std::size_t bytes, element_type type) const;
  [[nodiscard]] page_address locate(const index3& place) const;

  page_grid grid_;
  element_type type_ = element_type::complex128;
  any_page_map map_;
  std::vector<remote<array_page_device>> devices_;
  std::vector<std::vector<remote<array_page_device>>> on_nodes_;
  std::uint64_t window_bytes_ = 64 << 20;
};

}  // namespace orrery::storage
