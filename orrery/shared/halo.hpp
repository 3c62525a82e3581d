// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/shared/detail/axis.hpp>
#include <orrery/shared/detail/team_share.hpp>
#include <orrery/shared/matrix.hpp>
#include <orrery/shared/wrapped.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <source_location>

namespace orrery {

namespace detail {

class region_reader;
struct shared_object;

struct halo_request {
  shared_id id;
  std::uint64_t width;
  edges beyond;
  team_share share;
  std::source_location where;
};

/// The caller's rectangle of a matrix and so many rows and columns around it, with corners, for a
/// scope; without its type.
///
/// Either all is a copy, or, where the matrix has room for a halo, only what is around: that is
/// copied to the room, and the caller's elements are shown where they are. Members of one PE share
/// the room; each copies what it needs, the same values to the same place.
class halo_scope {
 public:
  explicit halo_scope(const halo_request& r);
  halo_scope(const halo_scope&) = delete;
  halo_scope& operator=(const halo_scope&) = delete;
  ~halo_scope();
  /// Parks until the copy is there.
  void ready();
  void close();

 protected:
  const std::byte* first_ = nullptr;  ///< of [row_, column_]
  std::int64_t row_ = 0;  ///< of the copy; below 0 where it begins beyond an edge
  std::int64_t column_ = 0;
  std::int64_t rows_ = 0;
  std::int64_t columns_ = 0;
  std::int64_t pitch_ = 0;  ///< elements from a row to the next
  run_of<std::int64_t> own_rows_;
  run_of<std::int64_t> own_columns_;

 private:
  struct copies;
  void begin_copy(const std::shared_ptr<const shared_object>& o);
  void begin_in_place(const std::shared_ptr<const shared_object>& o, const halo_request& r);
  void read(std::uint64_t row, std::uint64_t rows, std::uint64_t column, std::uint64_t columns, std::uint64_t to_row,
            std::uint64_t to_column);
  wire::unique_ptr<copies> copies_;
};

}  // namespace detail

/// A shared matrix in a scope of *halo cache*: `a[i, j]` for the caller's elements and those around
/// them. Indices are signed, as they are below 0 and above the last one beyond periodic edges.
/// Touching others is undefined; asserts see it.
template <class T>
class halo_matrix : public detail::halo_scope {
 public:
  using detail::halo_scope::halo_scope;
  [[nodiscard]] const T& operator[](std::int64_t row, std::int64_t column) const noexcept {
    assert(row >= row_ && row - row_ < rows_ && column >= column_ && column - column_ < columns_);
    return reinterpret_cast<const T*>(first_)[(row - row_) * pitch_ + (column - column_)];
  }
  /// From one row to the next.
  [[nodiscard]] std::int64_t pitch() const noexcept { return pitch_; }
  /// The caller's rows and columns, without the halo.
  [[nodiscard]] detail::run_of<std::int64_t> rows() const noexcept { return own_rows_; }
  /// The columns of this member's part.
  [[nodiscard]] detail::run_of<std::int64_t> columns() const noexcept { return own_columns_; }
};

namespace detail {

template <class Handle>
struct halo_behaviour : halo_request {
  using handle = Handle;
};

}  // namespace detail

/// The behaviour *halo cache* of a member of a team: a copy of the elements that owner_computes(m,
/// team) gives it and of `width` rows and columns on all sides, made when the scope opens. Opening
/// throws usage_error (the rows of a PE do not follow each other, as in a cyclic distribution),
/// std::bad_alloc, node_lost.
///
/// A matrix with room for it, `distribution::block().with_halo(width)`, is not copied: the caller's
/// elements are viewed, and only those around them come along. Rows around them that other members
/// on the same PE answer for are viewed, too. So nobody may write what is viewed meanwhile, as
/// under read_view: a write scope of it throws usage_error, also this process's own.
template <class T, class Team>
  requires requires(const Team& t) { t.share(); }
[[nodiscard]] detail::halo_behaviour<halo_matrix<T>> halo_cache(
    const shared_matrix<T>& m, const Team& team, std::uint64_t width = 1, edges beyond = edges::open,
    const std::source_location& where = std::source_location::current()) {
  detail::require_bytes<T>();
  return {{m.id(), width, beyond, team.share(), where}};
}

}  // namespace orrery
