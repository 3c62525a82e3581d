// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/shared/matrix.hpp>
#include <orrery/shared/vector.hpp>

#include <exception>
#include <source_location>

namespace orrery {

namespace detail {

/// Copies all elements to an object of the same shape: all owners send theirs at once, each through
/// a few megabytes. Parks. Throws node_lost, usage_error (destroyed, somebody views `to`), stopped.
void copy_elements(const shared_id& from, const shared_id& to, const std::source_location& where);

template <class Shared>
Shared replace_by(const Shared& before, Shared after, const std::source_location& where) {
  try {
    copy_elements(before.id(), after.id(), where);
  } catch (...) {
    try {
      destroy(after);
    } catch (const std::exception&) {  // the first failure is told of
    }
    throw;
  }
  destroy(before);
  return after;
}

}  // namespace detail

/// Gives a vector another distribution, or other PEs: `v = redistribute(v, distribution::cyclic())`.
/// Returns the vector of the same elements and destroys the one that was given, so that other
/// handles of that one, and its open scopes, must not be used any more. If it throws, that one is as
/// it was. While it runs both have memory.
///
/// Called by one process while nobody writes the vector. Parks. Throws as the constructor of
/// shared_vector, and usage_error (destroyed).
template <class T>
[[nodiscard]] shared_vector<T> redistribute(const shared_vector<T>& v, const distribution& how,
                                            const std::source_location& where = std::source_location::current()) {
  return detail::replace_by(v, shared_vector<T>(v.size(), how, where), where);
}
/// The same of a matrix.
template <class T>
[[nodiscard]] shared_matrix<T> redistribute(const shared_matrix<T>& m, const distribution& how,
                                            const std::source_location& where = std::source_location::current()) {
  return detail::replace_by(m, shared_matrix<T>(m.row_count(), m.column_count(), how, where), where);
}

}  // namespace orrery
