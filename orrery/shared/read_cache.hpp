// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/shared/guard.hpp>
#include <orrery/shared/matrix.hpp>
#include <orrery/shared/sharing_check.hpp>
#include <orrery/shared/vector.hpp>

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <source_location>
#include <span>

namespace orrery {

class team_member;

namespace detail {

class region_reader;
class team_gather;

struct cache_request {
  shared_id id;
  std::uint64_t row;
  std::uint64_t rows;
  std::uint64_t column;
  std::uint64_t columns;
  bool in_place;  ///< a view: memory itself where it can be had
  std::source_location where;
  team_member* together = nullptr;  ///< all members of its team make the copy at once
};

/// A rectangle of a shared object, to be read in a scope: a copy in the order of the indices, or
/// the memory itself; without its type.
class cache_scope {
 public:
  explicit cache_scope(const cache_request& r);
  cache_scope(const cache_scope&) = delete;
  cache_scope& operator=(const cache_scope&) = delete;
  ~cache_scope();
  void ready();
  void close();

 protected:
  [[nodiscard]] std::byte* copy() const noexcept { return copy_.get(); }

  const std::byte* first_ = nullptr;
  std::uint64_t row_ = 0;
  std::uint64_t rows_ = 0;
  std::uint64_t column_ = 0;
  std::uint64_t columns_ = 0;

 private:
  struct free_copy {
    void operator()(std::byte* p) const noexcept;
  };
  std::shared_ptr<const shared_object> object_;
  scope_guard guard_;
  std::unique_ptr<std::byte, free_copy> copy_;
  std::unique_ptr<region_reader> reader_;
  std::unique_ptr<team_gather> gather_;
  watched_access watch_;
  bool is_view_ = false;
};

}  // namespace detail

/// A shared vector, or a part of one, in a scope of *read cache*: read-only memory in the order of
/// the indices. Touching what is not in it is undefined; asserts see it.
template <class T>
class cached_vector : public detail::cache_scope {
 public:
  using detail::cache_scope::cache_scope;
  [[nodiscard]] const T& operator[](std::uint64_t i) const noexcept {
    assert(i - row_ < rows_);
    return data()[i - row_];
  }
  /// All of it, from the element first() on.
  [[nodiscard]] const T* data() const noexcept { return reinterpret_cast<const T*>(first_); }
  operator const T*() const noexcept {
    return data();
  }  // NOLINT(google-explicit-constructor): the sequential function takes it
  [[nodiscard]] std::span<const T> span() const noexcept { return {data(), rows_}; }
  [[nodiscard]] const T* begin() const noexcept { return data(); }
  [[nodiscard]] const T* end() const noexcept { return data() + rows_; }
  [[nodiscard]] std::uint64_t first() const noexcept { return row_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return rows_; }
};

/// A shared matrix, or a rectangle of one, in a scope of read cache: row after row; else like
/// cached_vector.
template <class T>
class cached_matrix : public detail::cache_scope {
 public:
  using detail::cache_scope::cache_scope;
  [[nodiscard]] const T& operator[](std::uint64_t row, std::uint64_t column) const noexcept {
    assert(row - row_ < rows_ && column - column_ < columns_);
    return data()[(row - row_) * columns_ + (column - column_)];
  }
  [[nodiscard]] const T* data() const noexcept { return reinterpret_cast<const T*>(first_); }
  operator const T*() const noexcept {
    return data();
  }  // NOLINT(google-explicit-constructor): the sequential function takes it
  [[nodiscard]] std::span<const T> row(std::uint64_t i) const noexcept {
    return {data() + (i - row_) * columns_, columns_};
  }
  [[nodiscard]] std::span<const T> span() const noexcept { return {data(), rows_ * columns_}; }
  [[nodiscard]] std::uint64_t first_row() const noexcept { return row_; }
  [[nodiscard]] std::uint64_t row_count() const noexcept { return rows_; }
  [[nodiscard]] std::uint64_t first_column() const noexcept { return column_; }
  [[nodiscard]] std::uint64_t column_count() const noexcept { return columns_; }
};

/// The same in a scope of *read view*.
template <class T>
class viewed_vector : public cached_vector<T> {
 public:
  using cached_vector<T>::cached_vector;
};
template <class T>
class viewed_matrix : public cached_matrix<T> {
 public:
  using cached_matrix<T>::cached_matrix;
};

namespace detail {

template <class Handle>
struct cache_behaviour : cache_request {
  using handle = Handle;
  /// What a copy takes.
  [[nodiscard]] std::uint64_t bytes() const noexcept {
    return rows * columns * sizeof(*std::declval<const Handle&>().data());
  }
};

}  // namespace detail

/// The behaviour *read cache*: a copy, made when the scope opens, of all or of a part. What others
/// write meanwhile is not seen. `read_cache(v).bytes()` is the memory that it takes. Opening throws std::out_of_range
/// (the part is not inside), std::bad_alloc (its what() says how much it needs), node_lost.
template <class T>
[[nodiscard]] detail::cache_behaviour<cached_vector<T>> read_cache(
    const shared_vector<T>& v, const std::source_location& where = std::source_location::current()) {
  return {{v.id(), 0, v.size(), 0, 1, false, where}};
}
template <class T>
[[nodiscard]] detail::cache_behaviour<cached_vector<T>> read_cache(
    const vector_part<T>& p, const std::source_location& where = std::source_location::current()) {
  return {{p.whole().id(), p.first(), p.size(), 0, 1, false, where}};
}
template <class T>
[[nodiscard]] detail::cache_behaviour<cached_matrix<T>> read_cache(
    const shared_matrix<T>& m, const std::source_location& where = std::source_location::current()) {
  return {{m.id(), 0, m.row_count(), 0, m.column_count(), false, where}};
}
template <class T>
[[nodiscard]] detail::cache_behaviour<cached_matrix<T>> read_cache(
    const matrix_part<T>& p, const std::source_location& where = std::source_location::current()) {
  return {{p.whole().id(), p.first_row(), p.row_count(), p.first_column(), p.column_count(), false, where}};
}

/// A read cache that all members of a team open together: each sends what its PE owns to all others, and asks nobody.
/// It is a barrier. Each element is as it was when its owner's members came; who writes elements of others needs a
/// barrier before. Opening throws also usage_error (a PE owns elements and has no member), process_gone.
template <class T>
[[nodiscard]] detail::cache_behaviour<cached_vector<T>> read_cache(
    const shared_vector<T>& v, team_member& team, const std::source_location& where = std::source_location::current()) {
  return {{v.id(), 0, v.size(), 0, 1, false, where, &team}};
}
template <class T>
[[nodiscard]] detail::cache_behaviour<cached_matrix<T>> read_cache(
    const shared_matrix<T>& m, team_member& team, const std::source_location& where = std::source_location::current()) {
  return {{m.id(), 0, m.row_count(), 0, m.column_count(), false, where, &team}};
}

/// The behaviour *read view*: no copy where all elements lie on this machine, in the order of their
/// indices; else a read cache. Nobody may write meanwhile: a scope that may write does not open
/// while a view is open, nor a view while such a scope is: usage_error names both places. (Access
/// by default is not watched.)
template <class T>
[[nodiscard]] detail::cache_behaviour<viewed_vector<T>> read_view(
    const shared_vector<T>& v, const std::source_location& where = std::source_location::current()) {
  return {{v.id(), 0, v.size(), 0, 1, true, where}};
}
template <class T>
[[nodiscard]] detail::cache_behaviour<viewed_matrix<T>> read_view(
    const shared_matrix<T>& m, const std::source_location& where = std::source_location::current()) {
  return {{m.id(), 0, m.row_count(), 0, m.column_count(), true, where}};
}

}  // namespace orrery
