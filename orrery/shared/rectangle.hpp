// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/shared/handle.hpp>
#include <orrery/shared/matrix.hpp>
#include <orrery/shared/vector.hpp>

#include <type_traits>
#include <utility>

namespace orrery::detail {

/// All elements, or those of a part.
template <class T>
[[nodiscard]] rectangle rectangle_of(const vector_part<T>& p) noexcept {
  return {p.whole().id(), p.first(), p.size(), 0, 1};
}
template <class T>
[[nodiscard]] rectangle rectangle_of(const matrix_part<T>& p) noexcept {
  return {p.whole().id(), p.first_row(), p.row_count(), p.first_column(), p.column_count()};
}
template <class T>
[[nodiscard]] rectangle rectangle_of(const shared_vector<T>& v) noexcept {
  return {v.id(), 0, v.size(), 0, 1};
}
template <class T>
[[nodiscard]] rectangle rectangle_of(const shared_matrix<T>& m) noexcept {
  return {m.id(), 0, m.row_count(), 0, m.column_count()};
}

/// Something whose elements are copied: a part of a vector or a matrix.
template <class P>
concept shared_part = requires(const P& p) {
  rectangle_of(p);
  p.whole();
};
template <class P>
using element_of = typename std::remove_cvref_t<decltype(std::declval<const P&>().whole())>::value_type;

}  // namespace orrery::detail
