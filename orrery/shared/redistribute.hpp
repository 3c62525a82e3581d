// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/detail/or_undo.hpp>
#include <orrery/shared/detail/held_release.hpp>
#include <orrery/shared/matrix.hpp>
#include <orrery/shared/vector.hpp>

#include <cstdint>
#include <exception>
#include <functional>
#include <source_location>
#include <vector>

namespace orrery {

namespace detail {

/// Copies all elements to an object of the same shape: all owners send theirs at once, each through
/// a few megabytes. Parks. Throws node_lost, usage_error (destroyed, somebody views `to`), stopped.
void copy_elements(const shared_id& from, const shared_id& to, const std::source_location& where);

/// The same of elements that their owners hold, at an owner of `from`.
template <class T>
class held_element_writer : public held_release<T> {
 public:
  using held_release<T>::held_release;
  using held_release<T>::put;
};
template <class T>
void push_held_elements(shared_id from_id, shared_id to_id) {
  const auto from = hold_object(from_id);
  held_element_writer<T> to(release_request{to_id, 0, from->rows, 0, from->columns, {}, false});
  for (const held_run& r : held_runs(*from, {0, from->rows, 0, from->columns}))
    for (std::uint64_t n = 0; r.part == from->own_part && n < r.count(); ++n) {
      const element_place p = place_in(*from, r, n);
      to.put(p.row, p.column, std::cref(held_elements<T>(*from)[n]));
    }
  to.close();
}
template <class T>
void copy_held_elements(const shared_id& from_id, const shared_id& to_id, const std::source_location& where) {
  const auto from = hold_object(from_id);
  const region all{0, from->rows, 0, from->columns};
  watched_access reads;
  watched_access writes;
  watch_region(reads, from, access_kind::read, all, where, "redistribute");
  watch_region(writes, hold_for(to_id, all), access_kind::write, all, where, "redistribute");
  std::vector<future<void>> sent;
  finish(sent, [&] {
    for (const std::uint32_t p : from->how().pes)
      sent.push_back(start_call<&push_held_elements<T>>(orrery::pe(p), from_id, to_id));
  });
}

template <class Shared>
Shared replace_by(const Shared& before, Shared after, const std::source_location& where) {
  or_undo(
      [&] {
        using T = typename Shared::value_type;
        if constexpr (held_by_owner<T>) {
          copy_held_elements<T>(before.id(), after.id(), where);
        } else {
          copy_elements(before.id(), after.id(), where);
        }
      },
      [&] { destroy(after); });
  destroy(before, where);
  return after;
}

}  // namespace detail

/// Gives a vector another distribution, or other PEs:
/// `v = redistribute(v, distribution::cyclic())`. Returns the vector of the same elements and
/// destroys the one that was given, so that other handles of that one, and its open scopes, must
/// not be used any more. If it throws, that one is as it was. While it runs both have memory.
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
