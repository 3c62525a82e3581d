// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/shared/detail/guard.hpp>
#include <orrery/shared/detail/held.hpp>
#include <orrery/shared/matrix.hpp>
#include <orrery/shared/sharing_check.hpp>
#include <orrery/shared/vector.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <source_location>
#include <span>
#include <stdexcept>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

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

/// Throws std::bad_alloc that says what, and how much, could not be had for a copy, and what else
/// to use.
[[noreturn]] void throw_no_memory(const shared_object& o, std::uint64_t bytes, std::string_view copy = "cache",
                                  std::string_view instead = "cache a part, or use read_view on its machine");

/// Memory for a copy: what `allocate` returns, which needs so many bytes. Throws as
/// throw_no_memory.
template <class F>
[[nodiscard]] auto memory_for_copy(const shared_object& o, std::uint64_t size, F allocate) {
  try {
    return allocate();
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {  // of a vector: more than there are addresses
  }
  throw_no_memory(o, size);
}

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
  [[noreturn]] void throw_rows_apart() const;

  const std::byte* first_ = nullptr;
  std::uint64_t row_ = 0;
  std::uint64_t rows_ = 0;
  std::uint64_t column_ = 0;
  std::uint64_t columns_ = 0;
  std::uint64_t pitch_ = 0;  ///< elements from a row to the next

 private:
  struct free_copy {
    void operator()(std::byte* p) const noexcept;
  };
  std::shared_ptr<const shared_object> object_;
  scope_guard guard_;
  wire::unique_ptr<std::byte, free_copy> copy_;
  wire::unique_ptr<region_reader> reader_;
  wire::unique_ptr<team_gather> gather_;
  watched_access watch_;
  bool is_view_ = false;
};

/// The same of elements that their owners hold: always a copy.
template <class T>
class held_cache {
 public:
  explicit held_cache(const cache_request& r)
      : region_{r.row, r.rows, r.column, r.columns},
        object_(hold_for(r.id, region_)),
        where_(r.where),
        team_(r.together),
        memory_(memory_for_copy(*object_, r.rows * r.columns * sizeof(T),
                                [&] { return std::vector<T>(r.rows * r.columns); })) {
    if (team_ == nullptr) begin();
  }
  held_cache(const held_cache&) = delete;
  held_cache& operator=(const held_cache&) = delete;
  void ready() {
    if (team_ != nullptr) {
      meet_team(*team_);
      begin();
    }
    reader_.finish();
    watch_.end();
    if (team_ != nullptr) meet_team(*team_);
  }
  void close() { memory_ = {}; }

 protected:
  [[nodiscard]] std::byte* copy() noexcept { return reinterpret_cast<std::byte*>(memory_.data()); }
  [[nodiscard]] std::byte* copy() const noexcept {
    return const_cast<std::byte*>(reinterpret_cast<const std::byte*>(memory_.data()));
  }

 private:
  void begin() {
    watch_region(watch_, object_, access_kind::read, region_, where_, "read_cache");
    reader_.begin(object_, region_, memory_.data());
  }
  region region_;
  std::shared_ptr<const shared_object> object_;
  std::source_location where_;
  team_member* team_;
  std::vector<T> memory_;
  held_reader<T> reader_;
  watched_access watch_;

 protected:
  const std::byte* first_ = copy();
  std::uint64_t row_ = region_.row;
  std::uint64_t rows_ = region_.rows;
  std::uint64_t column_ = region_.column;
  std::uint64_t columns_ = region_.columns;
  std::uint64_t pitch_ = region_.columns;
};

template <class T>
using cache_base = std::conditional_t<held_by_owner<T>, held_cache<T>, cache_scope>;

}  // namespace detail

/// A shared vector, or a part of one, in a scope of *read cache*: read-only memory in the order of
/// the indices. Touching what is not in it is undefined; asserts see it.
template <class T>
class cached_vector : public detail::cache_base<T> {
  using base = detail::cache_base<T>;

 public:
  using base::base;
  [[nodiscard]] const T& operator[](std::uint64_t i) const noexcept {
    assert(i - this->row_ < this->rows_);
    return data()[i - this->row_];
  }
  /// All of it, from the element first() on.
  [[nodiscard]] const T* data() const noexcept { return reinterpret_cast<const T*>(this->first_); }
  operator const T*() const noexcept {
    return data();
  }  // NOLINT(google-explicit-constructor): the sequential function takes it
  /// The elements of the cache.
  [[nodiscard]] std::span<const T> span() const noexcept { return {data(), this->rows_}; }
  [[nodiscard]] const T* begin() const noexcept { return data(); }
  [[nodiscard]] const T* end() const noexcept { return data() + this->rows_; }
  /// The index of the first element of the cache.
  [[nodiscard]] std::uint64_t first() const noexcept { return this->row_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return this->rows_; }
};

/// A shared matrix, or a rectangle of one, in a scope of read cache: row after row; else like
/// cached_vector.
template <class T>
class cached_matrix : public detail::cache_base<T> {
  using base = detail::cache_base<T>;

 public:
  using base::base;
  [[nodiscard]] const T& operator[](std::uint64_t row, std::uint64_t column) const noexcept {
    assert(row - this->row_ < this->rows_ && column - this->column_ < this->columns_);
    return data()[(row - this->row_) * this->pitch_ + (column - this->column_)];
  }
  [[nodiscard]] const T* data() const noexcept { return reinterpret_cast<const T*>(this->first_); }
  operator const T*() const noexcept {
    return data();
  }  // NOLINT(google-explicit-constructor): the sequential function takes it
  /// The elements of row i that are in the cache.
  [[nodiscard]] std::span<const T> row(std::uint64_t i) const noexcept {
    return {data() + (i - this->row_) * this->pitch_, this->columns_};
  }
  /// Elements from a row to the next in memory: column_count(), but of a view of a part of the
  /// columns or of a matrix with room for a halo.
  [[nodiscard]] std::uint64_t pitch() const noexcept { return this->pitch_; }
  /// All of it. Throws usage_error for a view whose rows do not follow each other: of a part of the
  /// columns, or of a matrix with room for a halo.
  [[nodiscard]] std::span<const T> span() const {
    if (this->pitch_ != this->columns_ && this->rows_ > 1) this->throw_rows_apart();
    return {data(), this->rows_ * this->columns_};
  }
  /// The first row of the cache, counted in the whole matrix.
  [[nodiscard]] std::uint64_t first_row() const noexcept { return this->row_; }
  /// The number of its rows.
  [[nodiscard]] std::uint64_t row_count() const noexcept { return this->rows_; }
  /// The first column of the cache, counted in the whole matrix.
  [[nodiscard]] std::uint64_t first_column() const noexcept { return this->column_; }
  /// The number of its columns.
  [[nodiscard]] std::uint64_t column_count() const noexcept { return this->columns_; }
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
  /// The memory of a copy.
  [[nodiscard]] std::uint64_t bytes() const noexcept {
    return rows * columns * sizeof(*std::declval<const Handle&>().data());
  }
};

}  // namespace detail

/// The behaviour *read cache*: a copy, made when the scope opens, of all or of a part. Writes of
/// others are not seen meanwhile. `read_cache(v).bytes()` is the memory that it takes. Opening
/// throws std::out_of_range (the part is not inside), std::bad_alloc (its what() says how much it
/// needs), node_lost.
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

/// A read cache that all members of a team open together: each sends what its PE owns to all
/// others, and asks nobody. It is a barrier. Each element is as it was when its owner's members
/// came; who writes elements of others needs a barrier before. Opening throws also usage_error (a
/// PE owns elements and has no member), process_gone.
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

/// The behaviour *read view*, of all or of a part: no copy where the elements lie on this machine,
/// in the order of their indices, or are owned by one PE of it; else a read cache. Nobody may write
/// them meanwhile: a scope that may does not open while a view of the same elements is open, nor a
/// view while such a scope is: usage_error names both places. (Access by default is not watched.)
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

template <class T>
[[nodiscard]] detail::cache_behaviour<viewed_vector<T>> read_view(
    const vector_part<T>& p, const std::source_location& where = std::source_location::current()) {
  return {{p.whole().id(), p.first(), p.size(), 0, 1, true, where}};
}
template <class T>
[[nodiscard]] detail::cache_behaviour<viewed_matrix<T>> read_view(
    const matrix_part<T>& p, const std::source_location& where = std::source_location::current()) {
  return {{p.whole().id(), p.first_row(), p.row_count(), p.first_column(), p.column_count(), true, where}};
}

}  // namespace orrery
