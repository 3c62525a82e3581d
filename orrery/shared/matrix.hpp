// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/shared/detail/shared_handle.hpp>
#include <orrery/shared/distribution.hpp>
#include <orrery/shared/held_element.hpp>
#include <orrery/shared/iterator.hpp>
#include <orrery/shared/shared_element.hpp>

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <span>

namespace orrery {

template <class T>
class matrix_part;

/// A matrix whose elements lie on many PEs, by rows, columns or tiles; else like shared_vector.
///
///     shared_matrix<int> m(512, 512);       // a block of rows for each PE
///     m[3, 4] = 1;
///     m[3, 4] += 1;
template <class T>
class shared_matrix {
 public:
  using value_type = T;

  /// Null: using it throws usage_error.
  shared_matrix() noexcept = default;
  /// Makes a matrix. Parks and throws as the constructor of shared_vector.
  shared_matrix(std::uint64_t rows, std::uint64_t columns, const distribution& how = distribution::block(),
                const std::source_location& where = std::source_location::current())
      : id_(detail::make_shared_of<T>("shared matrix", rows, columns, how, nullptr, where)),
        rows_(rows),
        columns_(columns) {}
  /// The same; all elements are `value`.
  shared_matrix(std::uint64_t rows, std::uint64_t columns, const distribution& how, const T& value,
                const std::source_location& where = std::source_location::current())
      : id_(detail::make_shared_of<T>("shared matrix", rows, columns, how, &value, where)),
        rows_(rows),
        columns_(columns) {}

  /// The number of rows.
  [[nodiscard]] std::uint64_t row_count() const noexcept { return rows_; }
  /// The number of columns.
  [[nodiscard]] std::uint64_t column_count() const noexcept { return columns_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return rows_ * columns_; }
  /// An element; see shared_element.
  [[nodiscard]] shared_element<T> operator[](detail::element_index row, std::uint64_t column) const noexcept {
    return {id_, row.at, column, row.where};
  }
  /// All elements by default access, row after row; see shared_iterator.
  [[nodiscard]] shared_matrix_iterator<T> begin(
      const std::source_location& where = std::source_location::current()) const noexcept {
    return {id_, 0, where, {columns_}};
  }
  [[nodiscard]] shared_matrix_iterator<T> end(
      const std::source_location& where = std::source_location::current()) const noexcept {
    return {id_, size(), where, {columns_}};
  }
  /// The PE that owns an element. May park; throws std::out_of_range, usage_error.
  [[nodiscard]] std::uint32_t owner(std::uint64_t row, std::uint64_t column) const {
    return detail::owner_of_element(id_, row, column);
  }
  /// The elements that this PE owns, row after row. Good until the matrix is destroyed. May park.
  [[nodiscard]] std::span<T> local() const { return detail::local_elements<T>(id_); }
  /// The rows and the columns of these.
  [[nodiscard]] detail::axis_walk local_rows() const { return detail::elements_of_this_pe(id_).row_walk; }
  /// The columns of the elements on this PE.
  [[nodiscard]] detail::axis_walk local_columns() const { return detail::elements_of_this_pe(id_).column_walk; }
  /// A rectangle, for copy and for behaviours of a part: so many rows from `row` on, of so many
  /// columns from `column` on. Whether it is inside is checked then.
  [[nodiscard]] matrix_part<T> part(std::uint64_t row, std::uint64_t rows, std::uint64_t column,
                                    std::uint64_t columns) const noexcept {
    return {*this, row, rows, column, columns};
  }
  /// Whole rows.
  [[nodiscard]] matrix_part<T> rows(std::uint64_t first, std::uint64_t count) const noexcept {
    return {*this, first, count, 0, columns_};
  }
  /// Makes all elements `value`, each PE its own. Parks.
  void fill(const T& value, const std::source_location& where = std::source_location::current()) const {
    detail::fill_elements(id_, value, where);
  }

  /// False for a null handle.
  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(id_); }
  friend bool operator==(const shared_matrix&, const shared_matrix&) noexcept = default;
  /// For behaviours.
  [[nodiscard]] const detail::shared_id& id() const noexcept { return id_; }

  template <class A>
  void serialize(A& a) {
    a & id_ & rows_ & columns_;
  }

 private:
  detail::shared_id id_;
  std::uint64_t rows_ = 0;
  std::uint64_t columns_ = 0;
};

/// A rectangle of a shared matrix; see shared_matrix::part.
template <class T>
class matrix_part {
 public:
  using value_type = T;
  matrix_part(const shared_matrix<T>& of, std::uint64_t row, std::uint64_t rows, std::uint64_t column,
              std::uint64_t columns) noexcept
      : of_(of), row_(row), rows_(rows), column_(column), columns_(columns) {}
  /// The matrix that the part belongs to.
  [[nodiscard]] const shared_matrix<T>& whole() const noexcept { return of_; }
  /// The first row of the part, counted in the whole matrix.
  [[nodiscard]] std::uint64_t first_row() const noexcept { return row_; }
  /// The number of the part's rows.
  [[nodiscard]] std::uint64_t row_count() const noexcept { return rows_; }
  /// The first column of the part, counted in the whole matrix.
  [[nodiscard]] std::uint64_t first_column() const noexcept { return column_; }
  /// The number of the part's columns.
  [[nodiscard]] std::uint64_t column_count() const noexcept { return columns_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return rows_ * columns_; }

  template <class A>
  void serialize(A& a) {
    a & of_ & row_ & rows_ & column_ & columns_;
  }

 private:
  shared_matrix<T> of_;
  std::uint64_t row_;
  std::uint64_t rows_;
  std::uint64_t column_;
  std::uint64_t columns_;
};

/// Ends a shared matrix everywhere; see destroy of a shared vector.
template <class T>
void destroy(const shared_matrix<T>& m, const std::source_location& where = std::source_location::current()) {
  detail::destroy_shared(m.id(), where);
}

}  // namespace orrery
