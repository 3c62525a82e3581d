// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/detail/finish.hpp>
#include <orrery/process/spawn.hpp>
#include <orrery/shared/detail/guard.hpp>
#include <orrery/shared/matrix.hpp>
#include <orrery/shared/sharing_check.hpp>
#include <orrery/shared/vector.hpp>

#include <cstdint>
#include <source_location>
#include <span>
#include <type_traits>
#include <vector>

namespace orrery {

namespace detail {

/// All of an object is being written by its owners, for one process that waits for them.
class written_by_owners {
 public:
  /// Throws node_lost (an owner is), usage_error (destroyed, somebody views it).
  written_by_owners(const shared_id& id, const char* what, const std::source_location& where);
  /// Those PEs that own elements.
  [[nodiscard]] const std::vector<std::uint32_t>& owners() const noexcept { return owners_; }

 private:
  std::vector<std::uint32_t> owners_;
  scope_guard guard_;
  watched_access watch_;
};

template <auto F, class T, class... A>
void generate_own_elements(const shared_vector<T>& v, const A&... given) {
  const std::span<T> mine = v.local();
  std::size_t n = 0;
  for (const std::uint64_t i : v.local_indices()) mine[n++] = F(i, given...);
}
template <auto F, class T, class... A>
void generate_own_elements(const shared_matrix<T>& m, const A&... given) {
  auto [mine, pitch] = local_rows_of<T>(m.id());
  const axis_walk columns = m.local_columns();
  for (const std::uint64_t i : m.local_rows()) {
    T* at = mine;
    for (const std::uint64_t j : columns) *at++ = F(i, j, given...);
    mine += pitch;
  }
}

template <class Shared>
concept vector_or_matrix = std::is_same_v<Shared, shared_vector<typename Shared::value_type>> ||
                           std::is_same_v<Shared, shared_matrix<typename Shared::value_type>>;

template <auto F, class Shared, class... A>
void generate_by_owners(const Shared& a, const std::source_location& where, const A&... given) {
  const written_by_owners writes(a.id(), "generate", where);
  std::vector<future<void>> all;
  finish(all, [&] {
    for (const std::uint32_t p : writes.owners())
      all.push_back(start_call<static_cast<void (*)(const Shared&, const A&...)>(
                        &generate_own_elements<F, typename Shared::value_type, A...>)>(orrery::pe(p), a, given...));
  });
}

}  // namespace detail

/// Gives each element of a shared vector the value F(its index), and of a shared matrix F(row,
/// column): each PE computes its own, in the order of the indices. F is a function of the program.
///
/// Called by one process while nobody else uses the object. Parks, as F may. Throws what F throws
/// (other elements may have got their values), usage_error (destroyed, somebody views it),
/// node_lost, stopped.
template <auto F, detail::vector_or_matrix Shared>
void generate(const Shared& a, const std::source_location& where = std::source_location::current()) {
  detail::generate_by_owners<F>(a, where);
}
/// The same of F(index, given) or F(row, column, given): a value that is sent to the owners.
///
///     double wave(std::uint64_t i, double length);
///     generate<&wave>(v, 12.5);
template <auto F, detail::vector_or_matrix Shared, class Given>
  requires(!std::is_same_v<Given, std::source_location>)
void generate(const Shared& a, const Given& given,
              const std::source_location& where = std::source_location::current()) {
  detail::generate_by_owners<F>(a, where, given);
}

}  // namespace orrery
