// SPDX-License-Identifier: Apache-2.0
#include <orrery/files/box_plan.hpp>

#include <algorithm>

namespace orrery::detail {

namespace {

std::uint64_t quotient_up(std::uint64_t n, std::uint64_t by) { return n / by + (n % by != 0 ? 1 : 0); }

}  // namespace

std::optional<file_axes> axes_for(std::span<const std::uint64_t> sides, std::uint64_t rows, std::uint64_t columns) {
  const int n = static_cast<int>(sides.size());
  const auto side = [&](int k) { return k < 0 ? 1 : sides[static_cast<std::size_t>(k)]; };
  for (int r = -1; r < n; ++r)
    for (int c = -1; c < n; ++c) {
      if ((r >= 0 && c >= 0 && c <= r) || side(r) != rows || side(c) != columns) continue;
      bool rest = true;
      for (int k = 0; k < n; ++k) rest = rest && (k == r || k == c || side(k) == 1);
      if (rest) return file_axes{r, c};
    }
  return std::nullopt;
}

std::uint64_t box_plan::size() const noexcept {
  if (rows == 0 || columns == 0) return 0;
  return quotient_up(rows, box_rows) * quotient_up(columns, box_columns);
}

region box_plan::operator[](std::uint64_t n) const noexcept {
  const std::uint64_t across = quotient_up(columns, box_columns);
  const std::uint64_t row = n / across * box_rows;
  const std::uint64_t column = n % across * box_columns;
  return {row, std::min(box_rows, rows - row), column, std::min(box_columns, columns - column)};
}

box_plan plan_boxes(std::uint64_t rows, std::uint64_t columns, std::uint64_t unit_rows, std::uint64_t unit_columns,
                    std::uint64_t most, std::uint64_t count) {
  if (rows == 0 || columns == 0) return {rows, columns, 1, 1};
  unit_rows = std::clamp<std::uint64_t>(unit_rows, 1, rows);
  unit_columns = std::clamp<std::uint64_t>(unit_columns, 1, columns);
  box_plan p{rows, columns, unit_rows, unit_columns};
  if (columns <= most / unit_rows) {
    const std::uint64_t fit = most / (unit_rows * columns);
    const std::uint64_t fair = quotient_up(quotient_up(rows, unit_rows), std::max<std::uint64_t>(count, 1));
    p.box_columns = columns;
    p.box_rows = std::min(unit_rows * std::max<std::uint64_t>(std::min(fit, fair), 1), rows);
  } else {
    p.box_columns = std::min(columns, unit_columns * std::max<std::uint64_t>(most / (unit_rows * unit_columns), 1));
  }
  return p;
}

}  // namespace orrery::detail
