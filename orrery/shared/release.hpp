// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/shared/detail/guard.hpp>
#include <orrery/shared/detail/held_release.hpp>
#include <orrery/shared/detail/rectangle.hpp>
#include <orrery/shared/detail/word_copy.hpp>
#include <orrery/shared/matrix.hpp>
#include <orrery/shared/release_request.hpp>
#include <orrery/shared/sharing_check.hpp>
#include <orrery/shared/vector.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <source_location>
#include <type_traits>

namespace orrery {

namespace detail {

/// Writes that others are to see at the end of a scope; without their type. Where the element lies
/// on this machine a write is a store. Others are collected for each owner and sent when a buffer
/// is full; their order for each element is kept.
class release_scope {
 public:
  explicit release_scope(const release_request& r);
  release_scope(const release_scope&) = delete;
  release_scope& operator=(const release_scope&) = delete;
  ~release_scope();
  void ready() {}
  /// Sends what was gathered so far, and does not wait until others can see it. May park.
  void flush();
  /// Sends what is left and waits until all owners have written. Parks.
  void close();

 protected:
  /// May park. Throws std::out_of_range, node_lost, stopped.
  void put(std::uint64_t row, std::uint64_t column, const void* value) const;

  std::byte* whole_ = nullptr;  ///< all elements in the order of their indices, if they lie so here
  std::uint64_t pitch_ = 1;  ///< there, from a row to the next
  std::uint64_t row_ = 0;
  std::uint64_t rows_ = 0;
  std::uint64_t column_ = 0;
  std::uint64_t columns_ = 0;

 private:
  struct buffers;
  wire::unique_ptr<buffers> buffers_;
  scope_guard guard_;
  mutable watched_access watch_;
};

/// Stores an element that the machine writes whole so that nobody sees a part of it.
template <class T>
inline void store_released(std::byte* at, const T& value) noexcept {
  if constexpr (sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8) {
    using word =
        std::conditional_t<sizeof(T) == 1, std::uint8_t,
                           std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                              std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;
    word w;
    std::memcpy(&w, &value, sizeof w);
    // the end of the scope orders it
    __atomic_store_n(reinterpret_cast<word*>(at), w, __ATOMIC_RELAXED);
  } else {
    copy_in(at, &value, sizeof value);
  }
}
template <class T>
inline constexpr bool stored_whole =
    std::is_trivially_copyable_v<T> && (sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8);

template <class T>
using release_base = std::conditional_t<held_by_owner<T>, held_release<T>, release_scope>;
/// The argument of its put().
template <class T>
auto put_argument(const T& value) noexcept {
  if constexpr (held_by_owner<T>) {
    return std::cref(value);
  } else {
    return static_cast<const void*>(&value);
  }
}

template <class>
inline constexpr bool never_read = false;

/// The reference to an element in a release scope: it can be assigned to.
template <class Scope, class T>
class write_reference {
 public:
  write_reference(const Scope& s, std::uint64_t row, std::uint64_t column) noexcept
      : scope_(s), row_(row), column_(column) {}
  write_reference(const write_reference&) = delete;
  write_reference& operator=(const write_reference&) = delete;

  void operator=(const T& value) const { scope_.write(row_, column_, value); }  // NOLINT: nothing to go on with

  template <class U>
  operator U() const {  // NOLINT(google-explicit-constructor)
    static_assert(
        never_read<U>,
        "orrery: an element cannot be read in a release scope, which only writes; use read_release, or open the "
        "scope of another behaviour");
  }
  template <class U>
  void operator+=(const U&) const {
    static_assert(never_read<U>,
                  "orrery: an element cannot be read in a release scope, which only writes: `+=` reads it; use "
                  "read_release, or the element without a scope");
  }

 private:
  const Scope& scope_;
  std::uint64_t row_;
  std::uint64_t column_;
};

}  // namespace detail

/// A shared vector, or a part of one, in a scope of *release consistency*: elements can be written,
/// not read, and others see that at the end of the scope at the latest. Several may write disjoint
/// elements at the same time.
template <class T>
class release_vector : public detail::release_base<T> {
  using base = detail::release_base<T>;

 public:
  using base::base;
  [[nodiscard]] detail::write_reference<release_vector, T> operator[](std::uint64_t i) const noexcept {
    return {*this, i, 0};
  }
  /// The index of the first element that may be written.
  [[nodiscard]] std::uint64_t first() const noexcept { return this->row_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return this->rows_; }
  /// The same as an assignment. May park. Throws std::out_of_range, node_lost, stopped.
  void write(std::uint64_t i, std::uint64_t, const T& value) const {
    if constexpr (detail::stored_whole<T>) {
      if (this->whole_ != nullptr && i - this->row_ < this->rows_) [[likely]]
        return detail::store_released(this->whole_ + i * sizeof(T), value);
    }
    this->put(i, 0, detail::put_argument(value));
  }
};

/// A shared matrix, or a rectangle of one, in a scope of release consistency; else like
/// release_vector.
template <class T>
class release_matrix : public detail::release_base<T> {
  using base = detail::release_base<T>;

 public:
  using base::base;
  [[nodiscard]] detail::write_reference<release_matrix, T> operator[](std::uint64_t row,
                                                                      std::uint64_t column) const noexcept {
    return {*this, row, column};
  }
  /// The first row that may be written.
  [[nodiscard]] std::uint64_t first_row() const noexcept { return this->row_; }
  /// The number of rows that may be written.
  [[nodiscard]] std::uint64_t row_count() const noexcept { return this->rows_; }
  /// The first column that may be written.
  [[nodiscard]] std::uint64_t first_column() const noexcept { return this->column_; }
  /// The number of columns that may be written.
  [[nodiscard]] std::uint64_t column_count() const noexcept { return this->columns_; }
  /// The same as an assignment. May park. Throws std::out_of_range, node_lost, stopped.
  void write(std::uint64_t row, std::uint64_t column, const T& value) const {
    if constexpr (detail::stored_whole<T>) {
      if (this->whole_ != nullptr && row - this->row_ < this->rows_ && column - this->column_ < this->columns_)
          [[likely]]
        return detail::store_released(this->whole_ + (row * this->pitch_ + column) * sizeof(T), value);
    }
    this->put(row, column, detail::put_argument(value));
  }
};

namespace detail {

template <class Handle>
struct release_behaviour : release_request {
  using handle = Handle;
};

template <class Handle, class Shared>
[[nodiscard]] release_behaviour<Handle> release_of(const Shared& s, const std::source_location& where,
                                                   const release_options& options = {}) {
  const rectangle r = rectangle_of(s);
  return {{r.id, r.row, r.rows, r.column, r.columns, where, true, options}};
}
}  // namespace detail

/// The behaviour *release consistency* of all elements. Opening throws std::out_of_range (the part
/// is not inside), node_lost, usage_error (somebody views what may be written). Writing and ending
/// throw node_lost, with how many of the scope's writes have come to owners on other machines.
template <class T>
[[nodiscard]] detail::release_behaviour<release_vector<T>> release(
    const shared_vector<T>& v, const std::source_location& where = std::source_location::current()) {
  return detail::release_of<release_vector<T>>(v, where);
}
template <class T>
[[nodiscard]] detail::release_behaviour<release_matrix<T>> release(
    const shared_matrix<T>& m, const std::source_location& where = std::source_location::current()) {
  return detail::release_of<release_matrix<T>>(m, where);
}
/// The same of a part: `release(v.part(first, count))`, `release(m.rows(first, count))`. Writing
/// other elements throws std::out_of_range.
template <class T>
[[nodiscard]] detail::release_behaviour<release_vector<T>> release(
    const vector_part<T>& p, const std::source_location& where = std::source_location::current()) {
  return detail::release_of<release_vector<T>>(p, where);
}
template <class T>
[[nodiscard]] detail::release_behaviour<release_matrix<T>> release(
    const matrix_part<T>& p, const std::source_location& where = std::source_location::current()) {
  return detail::release_of<release_matrix<T>>(p, where);
}
/// The same with buffers of another size.
template <class T>
[[nodiscard]] detail::release_behaviour<release_vector<T>> release(
    const shared_vector<T>& v, const release_options& options,
    const std::source_location& where = std::source_location::current()) {
  return detail::release_of<release_vector<T>>(v, where, options);
}
template <class T>
[[nodiscard]] detail::release_behaviour<release_matrix<T>> release(
    const shared_matrix<T>& m, const release_options& options,
    const std::source_location& where = std::source_location::current()) {
  return detail::release_of<release_matrix<T>>(m, where, options);
}
template <class T>
[[nodiscard]] detail::release_behaviour<release_vector<T>> release(
    const vector_part<T>& p, const release_options& options,
    const std::source_location& where = std::source_location::current()) {
  return detail::release_of<release_vector<T>>(p, where, options);
}
template <class T>
[[nodiscard]] detail::release_behaviour<release_matrix<T>> release(
    const matrix_part<T>& p, const release_options& options,
    const std::source_location& where = std::source_location::current()) {
  return detail::release_of<release_matrix<T>>(p, where, options);
}
}  // namespace orrery
