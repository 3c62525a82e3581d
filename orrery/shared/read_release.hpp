// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/shared/detail/rectangle.hpp>
#include <orrery/shared/matrix.hpp>
#include <orrery/shared/read_cache.hpp>
#include <orrery/shared/release.hpp>
#include <orrery/shared/vector.hpp>

#include <cassert>
#include <cstdint>
#include <source_location>
#include <type_traits>

namespace orrery {

namespace detail {

/// An element of a scope that reads a cache and writes through a release scope.
template <class Scope, class T>
class update_reference {
 public:
  update_reference(const Scope& s, std::uint64_t row, std::uint64_t column) noexcept
      : scope_(s), row_(row), column_(column) {}
  update_reference(const update_reference&) = delete;

  operator T() const noexcept(std::is_nothrow_copy_constructible_v<T>) {
    return scope_.read(row_, column_);
  }  // NOLINT(google-explicit-constructor)
  void operator=(const T& value) const { scope_.write(row_, column_, value); }  // NOLINT: nothing to go on with
  void operator=(const update_reference& other) const { *this = static_cast<T>(other); }  // NOLINT
  void operator+=(const T& x) const { *this = static_cast<T>(static_cast<T>(*this) + x); }
  void operator-=(const T& x) const { *this = static_cast<T>(static_cast<T>(*this) - x); }
  void operator*=(const T& x) const { *this = static_cast<T>(static_cast<T>(*this) * x); }
  void operator/=(const T& x) const { *this = static_cast<T>(static_cast<T>(*this) / x); }
  void operator%=(const T& x) const { *this = static_cast<T>(static_cast<T>(*this) % x); }
  void operator&=(const T& x) const { *this = static_cast<T>(static_cast<T>(*this) & x); }
  void operator|=(const T& x) const { *this = static_cast<T>(static_cast<T>(*this) | x); }
  void operator^=(const T& x) const { *this = static_cast<T>(static_cast<T>(*this) ^ x); }
  void operator++() const { *this += T{1}; }
  void operator--() const { *this -= T{1}; }

 private:
  const Scope& scope_;
  std::uint64_t row_;
  std::uint64_t column_;
};

struct update_request {
  cache_request cache;
  release_request release;
};
template <class Handle>
struct update_behaviour : update_request {
  using handle = Handle;
};

/// The two scopes together.
template <class Cached, class Released, class T>
class update_scope : protected Cached {
 public:
  explicit update_scope(const update_request& r) : Cached(r.cache), written_(r.release) {}
  void ready() { Cached::ready(); }
  void flush() { written_.flush(); }
  void close() {
    written_.close();
    Cached::close();
  }

 protected:
  void write_both(std::uint64_t row, std::uint64_t column, const T& value) const {
    written_.write(row, column, value);  // first: this one says what is outside
    reinterpret_cast<T*>(this->copy())[number(row, column)] = value;
  }
  [[nodiscard]] const T& read_cached(std::uint64_t row, std::uint64_t column) const noexcept {
    assert(row - this->row_ < this->rows_ && column - this->column_ < this->columns_);
    return Cached::data()[number(row, column)];
  }

 private:
  [[nodiscard]] std::uint64_t number(std::uint64_t row, std::uint64_t column) const noexcept {
    return (row - this->row_) * this->columns_ + (column - this->column_);
  }
  Released written_;
};

}  // namespace detail

/// A shared vector, or a part of one, in a scope of *read cache and release* together: reads see
/// the copy that was made when the scope opened, and one's own writes, which others see at the end
/// of the scope at the latest.
template <class T>
class read_release_vector : public detail::update_scope<cached_vector<T>, release_vector<T>, T> {
 public:
  using detail::update_scope<cached_vector<T>, release_vector<T>, T>::update_scope;
  [[nodiscard]] detail::update_reference<read_release_vector, T> operator[](std::uint64_t i) const noexcept {
    return {*this, i, 0};
  }
  /// The index of the first element of the cache.
  [[nodiscard]] std::uint64_t first() const noexcept { return this->row_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return this->rows_; }
  /// The element in the cache, with what this scope has written.
  [[nodiscard]] const T& read(std::uint64_t i, std::uint64_t = 0) const noexcept { return this->read_cached(i, 0); }
  /// Writes the element here; others see it when the scope ends.
  void write(std::uint64_t i, std::uint64_t, const T& value) const { this->write_both(i, 0, value); }
};
/// The same of a shared matrix.
template <class T>
class read_release_matrix : public detail::update_scope<cached_matrix<T>, release_matrix<T>, T> {
 public:
  using detail::update_scope<cached_matrix<T>, release_matrix<T>, T>::update_scope;
  [[nodiscard]] detail::update_reference<read_release_matrix, T> operator[](std::uint64_t row,
                                                                            std::uint64_t column) const noexcept {
    return {*this, row, column};
  }
  /// The first row of the cache, counted in the whole matrix.
  [[nodiscard]] std::uint64_t first_row() const noexcept { return this->row_; }
  /// The number of its rows.
  [[nodiscard]] std::uint64_t row_count() const noexcept { return this->rows_; }
  /// The first column of the cache, counted in the whole matrix.
  [[nodiscard]] std::uint64_t first_column() const noexcept { return this->column_; }
  /// The number of its columns.
  [[nodiscard]] std::uint64_t column_count() const noexcept { return this->columns_; }
  /// The element in the cache, with what this scope has written.
  [[nodiscard]] const T& read(std::uint64_t row, std::uint64_t column) const noexcept {
    return this->read_cached(row, column);
  }
  /// Writes the element here; others see it when the scope ends.
  void write(std::uint64_t row, std::uint64_t column, const T& value) const { this->write_both(row, column, value); }
};

namespace detail {

template <class Handle, class Shared>
[[nodiscard]] update_behaviour<Handle> read_release_of(const Shared& s, const std::source_location& where) {
  const rectangle r = rectangle_of(s);
  return {
      {{r.id, r.row, r.rows, r.column, r.columns, false, where}, {r.id, r.row, r.rows, r.column, r.columns, where}}};
}

}  // namespace detail

/// The behaviour *read cache and release*, of all or of a part. Opening throws what those of the
/// two throw.
template <class T>
[[nodiscard]] detail::update_behaviour<read_release_vector<T>> read_release(
    const shared_vector<T>& v, const std::source_location& where = std::source_location::current()) {
  return detail::read_release_of<read_release_vector<T>>(v, where);
}
template <class T>
[[nodiscard]] detail::update_behaviour<read_release_matrix<T>> read_release(
    const shared_matrix<T>& m, const std::source_location& where = std::source_location::current()) {
  return detail::read_release_of<read_release_matrix<T>>(m, where);
}
template <class T>
[[nodiscard]] detail::update_behaviour<read_release_vector<T>> read_release(
    const vector_part<T>& p, const std::source_location& where = std::source_location::current()) {
  return detail::read_release_of<read_release_vector<T>>(p, where);
}
template <class T>
[[nodiscard]] detail::update_behaviour<read_release_matrix<T>> read_release(
    const matrix_part<T>& p, const std::source_location& where = std::source_location::current()) {
  return detail::read_release_of<read_release_matrix<T>>(p, where);
}

}  // namespace orrery
