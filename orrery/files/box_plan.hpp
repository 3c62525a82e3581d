// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/shared/detail/region.hpp>

#include <cstdint>
#include <optional>
#include <span>

namespace orrery::detail {

/// Which dimensions of an array in a file are the rows and the columns of a shared object; -1:
/// none, as there is one row or column only.
struct file_axes {
  int rows = -1;
  int columns = -1;

  template <class A>
  void serialize(A& a) {
    a & rows & columns;
  }
};

/// Sides of 1 may be anywhere among them; the others are rows and columns, in this order. Nothing
/// if that is not so.
[[nodiscard]] std::optional<file_axes> axes_for(std::span<const std::uint64_t> sides, std::uint64_t rows,
                                                std::uint64_t columns);

/// Boxes of an object that together are all of it, each of whole units (pages, chunks) of the file,
/// as long as the file goes on, and of a bounded number of bytes.
struct box_plan {
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::uint64_t box_rows = 1;
  std::uint64_t box_columns = 1;

  [[nodiscard]] std::uint64_t size() const noexcept;
  /// The n-th; those of the same rows follow each other.
  [[nodiscard]] region operator[](std::uint64_t n) const noexcept;
};

/// Boxes of at most `most` elements, which is no less than a unit has, and at least `count` boxes
/// if there are as many rows of units.
[[nodiscard]] box_plan plan_boxes(std::uint64_t rows, std::uint64_t columns, std::uint64_t unit_rows,
                                  std::uint64_t unit_columns, std::uint64_t most, std::uint64_t count);

}  // namespace orrery::detail
