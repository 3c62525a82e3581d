// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/shared/detail/axis.hpp>
#include <orrery/shared/detail/guard.hpp>
#include <orrery/shared/detail/held.hpp>
#include <orrery/shared/detail/team_share.hpp>
#include <orrery/shared/matrix.hpp>
#include <orrery/shared/sharing_check.hpp>
#include <orrery/shared/vector.hpp>

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <source_location>
#include <span>
#include <type_traits>

namespace orrery {

namespace detail {

/// Throws usage_error if a PE owns elements and has no member of the team.
void require_members(const shared_object& o, const team_share& s, const char* behaviour);

struct owned_request {
  shared_id id;
  std::uint64_t rows;
  std::uint64_t columns;
  team_share share;
  std::source_location where;
};

/// The elements that are the caller's, for a scope; without their type.
class owned_scope {
 public:
  explicit owned_scope(const owned_request& r);
  owned_scope(const owned_scope&) = delete;
  owned_scope& operator=(const owned_scope&) = delete;
  ~owned_scope();
  void ready() {}
  void close();

 protected:
  /// The number of a row among the PE's.
  [[nodiscard]] std::uint64_t row_number(std::uint64_t row) const noexcept {
    // in all cases, so that a compiler can move it out of a loop
    const std::uint64_t n = row - first_row_;
    if (round_ == 0) [[likely]]
      return n;
    return n / round_ * block_ + n % block_;
  }
  [[nodiscard]] bool is_mine(std::uint64_t row, std::uint64_t column) const noexcept;
  [[nodiscard]] const shared_object& object() const noexcept { return *object_; }
  void require_no_halo(const char* what) const;

  std::byte* first_ = nullptr;  ///< of the PE's elements
  std::byte* mine_ = nullptr;  ///< of the caller's, which follow each other
  std::uint64_t mine_rows_ = 0;
  std::uint64_t own_columns_ = 0;
  std::uint64_t pitch_ = 0;  ///< elements from a row to the next
  std::uint64_t first_row_ = 0;  ///< of the PE's, if its rows follow each other
  std::uint64_t first_column_ = 0;
  std::uint64_t block_ = 1;
  std::uint64_t round_ = 0;  ///< 0: the PE's rows follow each other
  axis_walk rows_;
  axis_walk columns_;
  std::uint64_t all_rows_ = 0;
  std::uint64_t all_columns_ = 0;

 private:
  std::shared_ptr<const shared_object> object_;
  scope_guard guard_;
  watched_access watch_;
};

/// The same of elements that the PE holds as objects. (The checker does not see which of them are
/// written.)
template <class T>
class held_own : public owned_scope {
 public:
  explicit held_own(const owned_request& r) : owned_scope(r) {
    if (first_ == nullptr) return;
    const auto before_mine = mine_ - first_;  // one byte stands for an element
    T* const first = held_elements<T>(object()).data();
    first_ = reinterpret_cast<std::byte*>(first);
    mine_ = reinterpret_cast<std::byte*>(first + before_mine);
  }
};
template <class T>
using owned_base = std::conditional_t<held_by_owner<T>, held_own<T>, owned_scope>;

}  // namespace detail

/// A shared vector in a scope of owner-computes: the elements that are the caller's, in memory.
/// Touching others is undefined; asserts see it.
template <class T>
class owned_vector : public detail::owned_base<T> {
  using base = detail::owned_base<T>;

 public:
  using base::base;
  [[nodiscard]] T& operator[](std::uint64_t i) const noexcept {
    assert(this->is_mine(i, 0));
    return reinterpret_cast<T*>(this->first_)[this->row_number(i)];
  }
  /// The indices of the caller's elements.
  [[nodiscard]] index_range indices() const noexcept { return this->rows_; }
  /// These elements, in the order of their indices.
  [[nodiscard]] std::span<T> span() const noexcept { return {reinterpret_cast<T*>(this->mine_), this->mine_rows_}; }
  [[nodiscard]] T* begin() const noexcept { return span().data(); }
  [[nodiscard]] T* end() const noexcept { return span().data() + this->mine_rows_; }
  /// The size of the whole vector.
  [[nodiscard]] std::uint64_t size() const noexcept { return this->all_rows_; }
};

/// A shared matrix in a scope of owner-computes; else like owned_vector.
template <class T>
class owned_matrix : public detail::owned_base<T> {
  using base = detail::owned_base<T>;

 public:
  using base::base;
  /// Elements of a row follow each other: `&a[i, 0]` is a pointer to the row, if whole rows are
  /// dealt out.
  [[nodiscard]] T& operator[](std::uint64_t row, std::uint64_t column) const noexcept {
    assert(this->is_mine(row, column));
    return reinterpret_cast<T*>(this->first_)[this->row_number(row) * this->pitch_ + (column - this->first_column_)];
  }
  /// The caller's elements of a row.
  [[nodiscard]] std::span<T> row(std::uint64_t i) const noexcept {
    return {reinterpret_cast<T*>(this->first_) + this->row_number(i) * this->pitch_, this->own_columns_};
  }
  /// The caller's rows and columns.
  [[nodiscard]] index_range rows() const noexcept { return this->rows_; }
  /// The columns that are this PE's.
  [[nodiscard]] index_range columns() const noexcept { return this->columns_; }
  /// Elements from one row to the next: more than columns where there is room for a halo.
  [[nodiscard]] std::uint64_t pitch() const noexcept { return this->pitch_; }
  /// All the caller's elements, row after row. Throws usage_error if there is room for a halo
  /// between the rows: take row(i) there.
  [[nodiscard]] std::span<T> span() const {
    this->require_no_halo("span()");
    return {reinterpret_cast<T*>(this->mine_), this->mine_rows_ * this->own_columns_};
  }
  /// The shape of the whole matrix.
  [[nodiscard]] std::uint64_t row_count() const noexcept { return this->all_rows_; }
  /// The number of columns of the whole matrix.
  [[nodiscard]] std::uint64_t column_count() const noexcept { return this->all_columns_; }
};

namespace detail {

template <class Handle>
struct owned_behaviour : owned_request {
  using handle = Handle;
};

}  // namespace detail

/// The behaviour *owner-computes*: the scope gives the elements that the caller's PE owns, as
/// memory. Opening throws node_lost, usage_error.
template <class T>
[[nodiscard]] detail::owned_behaviour<owned_vector<T>> owner_computes(
    const shared_vector<T>& v, const std::source_location& where = std::source_location::current()) {
  return {{v.id(), v.size(), 1, {}, where}};
}
template <class T>
[[nodiscard]] detail::owned_behaviour<owned_matrix<T>> owner_computes(
    const shared_matrix<T>& m, const std::source_location& where = std::source_location::current()) {
  return {{m.id(), m.row_count(), m.column_count(), {}, where}};
}
/// The same among the members of a team: those on one PE share its elements, in blocks of equal
/// size. Opening throws usage_error if a PE owns elements and has no member.
template <class T, class Team>
  requires requires(const Team& t) { t.share(); }
[[nodiscard]] detail::owned_behaviour<owned_vector<T>> owner_computes(
    const shared_vector<T>& v, const Team& team, const std::source_location& where = std::source_location::current()) {
  return {{v.id(), v.size(), 1, team.share(), where}};
}
template <class T, class Team>
  requires requires(const Team& t) { t.share(); }
[[nodiscard]] detail::owned_behaviour<owned_matrix<T>> owner_computes(
    const shared_matrix<T>& m, const Team& team, const std::source_location& where = std::source_location::current()) {
  return {{m.id(), m.row_count(), m.column_count(), team.share(), where}};
}

}  // namespace orrery
