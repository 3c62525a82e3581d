// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/shared/detail/shared_handle.hpp>
#include <orrery/shared/matrix.hpp>
#include <orrery/shared/vector.hpp>

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

/// Something whose elements are copied: a vector, a matrix, or a part of one.
template <class P>
concept shared_part = requires(const P& p) {
  rectangle_of(p);
  typename P::value_type;
};
template <class P>
using element_of = typename P::value_type;

}  // namespace orrery::detail
