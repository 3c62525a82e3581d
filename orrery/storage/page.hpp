// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/storage/domain.hpp>
#include <orrery/storage/element_type.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace orrery::storage {

namespace detail {

// Memory of pages, shared by counted references. Made and kept by page.cpp.
struct page_memory;
[[nodiscard]] page_memory* allocate_page(std::size_t bytes);
void hold_page(page_memory* m) noexcept;
void drop_page(page_memory* m) noexcept;
[[nodiscard]] bool is_shared(const page_memory* m) noexcept;
[[nodiscard]] std::byte* data_of(page_memory* m) noexcept;
[[nodiscard]] std::size_t capacity_of(const page_memory* m) noexcept;

}  // namespace detail

/// Memory is aligned to this, and so are offsets and lengths in files: what O_DIRECT asks for on
/// all drives.
inline constexpr std::size_t page_alignment = 4096;

/// A block of bytes that a drive can read into and write from without a copy. (Givelberg 2014,
/// section 2.1.)
///
/// Problem: a page of some megabytes goes from a drive to a device process, into its cache, to a
/// client on another PE, and back. Each copy costs as much as the drive's own transfer, and fresh
/// memory from the system costs more than that (its pages are cleared first). So a page is a value
/// whose bytes are shared: copying a page, keeping it in a cache and sending it to another PE of
/// the same node copy a pointer. To change the bytes, ask for `writable()`: it makes the page the
/// only owner, by a copy if there is another one. Another node gets the bytes by one copy into the
/// message and one out of it. Memory that is given up is kept for the next page of that size, up to
/// `page_pool_limit`.
///
/// Owned by whoever has it; to be used like an int: each page by one thread at a time, copies by
/// different threads at once. Pointers and spans from `writable()` are for changing bytes until the
/// page is copied or sent; then ask again. Does not park. Invariants: the memory begins at a
/// multiple of 4096 and its capacity is a multiple of 4096 (it begins at one of 2 MiB from 2 MiB
/// on, for huge pages); what lies between size() and capacity() belongs to the page and has no
/// meaning.
///
///     page p(4 << 20);                       // zeros
///     p.writable()[0] = std::byte{1};
///     device->write(p, 17);
///     page q = device->read(17);
class page {
 public:
  page() noexcept = default;
  /// `bytes` zeros. Throws std::bad_alloc.
  explicit page(std::size_t bytes);
  /// As large, with whatever was in the memory before. Throws std::bad_alloc.
  [[nodiscard]] static page uninitialized(std::size_t bytes);

  page(const page& o) noexcept : memory_(o.memory_), size_(o.size_) { detail::hold_page(memory_); }
  page(page&& o) noexcept : memory_(std::exchange(o.memory_, nullptr)), size_(std::exchange(o.size_, 0)) {}
  page& operator=(page o) noexcept {
    std::swap(memory_, o.memory_);
    std::swap(size_, o.size_);
    return *this;
  }
  ~page() { detail::drop_page(memory_); }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// The bytes that its memory has.
  [[nodiscard]] std::size_t capacity() const noexcept { return detail::capacity_of(memory_); }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  /// True if another page has the same bytes, so that `writable` would copy.
  [[nodiscard]] bool shared() const noexcept { return detail::is_shared(memory_); }

  /// The bytes, to be read. Does not park.
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return {detail::data_of(memory_), size_}; }
  /// The bytes, to be changed by this page only. Throws std::bad_alloc (if they have to be copied).
  [[nodiscard]] std::span<std::byte> writable();
  /// The first `n` bytes of the memory, which may be more than size(): for the transfers of a
  /// drive.
  [[nodiscard]] std::span<const std::byte> memory(std::size_t n) const noexcept {
    return {detail::data_of(memory_), n};
  }
  /// As memory, to be changed. Throws as writable.
  [[nodiscard]] std::span<std::byte> writable_memory(std::size_t n);
  /// Makes it a page of `n` bytes in the same memory: the first bytes stay as they are. False, and
  /// nothing is done, if that memory is too small or another page has it too. Does not park.
  [[nodiscard]] bool resize_in_place(std::size_t n) noexcept;

  /// The same bytes, wherever they are.
  friend bool operator==(const page& a, const page& b) noexcept;

  template <class A>
  void serialize(A& a) {
    std::uint64_t n = size_;
    a & n;
    if constexpr (A::is_loading::value) {
      a.require(n, 1);
      *this = uninitialized(n);
      a.block(detail::data_of(memory_), n);
    } else {
      a.block(static_cast<const std::byte*>(detail::data_of(memory_)), n);
    }
  }

 private:
  detail::page_memory* memory_ = nullptr;
  std::size_t size_ = 0;
};

/// A page that is a box of elements: n1 x n2 x n3 of one type, without gaps. (Givelberg 2014,
/// section 2.1.)
///
/// A value, as `page` is. The bytes behind the last element, up to the next multiple of
/// `page_alignment`, belong to the page on disk but not to size(). Transposing makes another page:
/// the elements are copied once.
class array_page : public page {
 public:
  array_page() noexcept = default;
  /// Zeros. Throws std::bad_alloc, std::invalid_argument (a negative side).
  array_page(const index3& shape, element_type type);
  /// Takes a page over as it is. Throws std::invalid_argument if it has fewer bytes than the
  /// elements need.
  array_page(page bytes, const index3& shape, element_type type);
  /// Elements of any value. Throws as the constructors.
  [[nodiscard]] static array_page uninitialized(const index3& shape, element_type type);
  /// Bytes of that many elements.
  [[nodiscard]] static std::size_t bytes_of(const index3& shape, element_type type);

  /// The number of elements along each dimension.
  [[nodiscard]] const index3& shape() const noexcept { return shape_; }
  /// The type of the elements.
  [[nodiscard]] element_type type() const noexcept { return type_; }
  /// The number of elements.
  [[nodiscard]] std::int64_t count() const noexcept { return product(shape_); }

  /// The elements. Throw std::invalid_argument, which names both types, if T is another type.
  template <element T>
  [[nodiscard]] std::span<const T> elements() const {
    require(element_type_of<T>);
    return {reinterpret_cast<const T*>(bytes().data()), static_cast<std::size_t>(count())};
  }
  /// As elements, to be changed. Throws as writable, too.
  template <element T>
  [[nodiscard]] std::span<T> writable_elements() {
    require(element_type_of<T>);
    return {reinterpret_cast<T*>(writable().data()), static_cast<std::size_t>(count())};
  }

  /// Changes places of dimensions 1 and 3, so that element (i, j, k) becomes (k, j, i) and the
  /// shape n3 x n2 x n1. Throws std::bad_alloc.
  void transpose13() { transpose(transposition::t13); }
  /// The same with dimensions 2 and 3.
  void transpose23() { transpose(transposition::t23); }
  /// The one of them that `t` names; nothing for `none`.
  void transpose(transposition t);

  friend bool operator==(const array_page& a, const array_page& b) noexcept;

  template <class A>
  void serialize(A& a) {
    a & shape_ & type_;
    page::serialize(a);
    if constexpr (A::is_loading::value) check();
  }

 private:
  void require(element_type wanted) const;
  void check() const;

  index3 shape_{};
  element_type type_ = element_type::complex128;
};

/// How much memory of pages that were given up is kept for later ones, in bytes, of the whole OS
/// process; 64 MiB at first. Memory beyond that goes back to the system at once. With `piece`,
/// pages of that many bytes and of down to half as many have memory of one size: so a page of real
/// numbers takes the memory of one of complex numbers, and the other way round. Any thread.
void set_page_pool_limit(std::size_t bytes, std::size_t piece = 0) noexcept;
/// The memory that is kept at this moment.
[[nodiscard]] std::size_t page_pool_bytes() noexcept;
/// Gives all of it back to the system.
void trim_page_pool() noexcept;

}  // namespace orrery::storage
