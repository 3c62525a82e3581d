// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/shared/detail/axis.hpp>

#include <cstdint>
#include <vector>

namespace orrery::detail {

/// Where the elements of a shared object lie: rows and columns are dealt out on their own, and each
/// pair of a part of the rows and a part of the columns is a part of the object, owned by one PE.
/// The elements of a part lie in the order of their rows. A vector is a matrix with one column.
/// With a halo there is room around each part: so many rows above and below, and columns left and
/// right, which belong to nobody's elements. Numbers within a part count that room between rows.
///
/// Invariants
///   L1  rows.parts() x columns.parts() == pes.size(), and no PE is there twice.
///   L2  The indices of each part of the columns follow each other.
struct layout {
  struct place {
    std::uint32_t part;
    std::uint64_t local;  ///< within the part, counted in elements
  };

  axis rows;
  axis columns;
  std::uint32_t element_bytes = 1;
  std::uint64_t halo = 0;  ///< rows and columns of room on all sides of each part
  std::vector<std::uint32_t> pes;  ///< of each part

  [[nodiscard]] std::uint32_t parts() const noexcept { return static_cast<std::uint32_t>(pes.size()); }
  [[nodiscard]] std::uint32_t row_part(std::uint32_t part) const noexcept { return part / columns.parts(); }
  [[nodiscard]] std::uint32_t column_part(std::uint32_t part) const noexcept { return part % columns.parts(); }
  [[nodiscard]] std::uint64_t rows_of(std::uint32_t part) const noexcept { return rows.count(row_part(part)); }
  [[nodiscard]] std::uint64_t columns_of(std::uint32_t part) const noexcept { return columns.count(column_part(part)); }
  [[nodiscard]] std::uint64_t elements_of(std::uint32_t part) const noexcept {
    return rows_of(part) * columns_of(part);
  }
  /// Elements from a row of a part to the next.
  [[nodiscard]] std::uint64_t pitch_of(std::uint32_t part) const noexcept { return columns_of(part) + 2 * halo; }
  /// Numbers within a part are below this.
  [[nodiscard]] std::uint64_t extent_of(std::uint32_t part) const noexcept {
    return elements_of(part) == 0 ? 0 : (rows_of(part) - 1) * pitch_of(part) + columns_of(part);
  }
  /// Elements that the memory of a part has room for, and the number of its first one there.
  [[nodiscard]] std::uint64_t room_of(std::uint32_t part) const noexcept {
    return elements_of(part) == 0 ? 0 : (rows_of(part) + 2 * halo) * pitch_of(part);
  }
  [[nodiscard]] std::uint64_t room_before(std::uint32_t part) const noexcept {
    return elements_of(part) == 0 ? 0 : halo * (pitch_of(part) + 1);
  }
  [[nodiscard]] std::uint64_t elements() const noexcept { return rows.size() * columns.size(); }
  /// Both indices are inside.
  [[nodiscard]] place find(std::uint64_t row, std::uint64_t column) const noexcept {
    const axis::place r = rows.find(row);
    if (columns.parts() == 1) return {r.part, r.local * (columns.size() + 2 * halo) + column};
    const axis::place c = columns.find(column);
    return {r.part * columns.parts() + c.part, r.local * (columns.count(c.part) + 2 * halo) + c.local};
  }
  /// Part after part, the elements are in the order of their indices.
  [[nodiscard]] bool in_order() const noexcept { return columns.parts() == 1 && rows.contiguous() && halo == 0; }
  /// The part that the PE owns; parts() if it owns none.
  [[nodiscard]] std::uint32_t part_of(std::uint32_t pe) const noexcept;
  /// False if it came from a message and makes no sense.
  [[nodiscard]] bool valid() const noexcept;

  template <class A>
  void serialize(A& a) {
    a & rows & columns & element_bytes & halo & pes;
  }
};

}  // namespace orrery::detail
