// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/group.hpp>
#include <orrery/process/when_all.hpp>

#include <concepts>
#include <cstddef>
#include <exception>
#include <initializer_list>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

// Groups of processes that are there already, and parts of groups. "An array of remote pointers
// defines a group" (Givelberg 2014, section 3.2).
//
//     auto pair = make_group({left, right});  // of what was spawned one by one
//     auto odd = subgroup(workers, [](std::size_t rank) { return rank % 2 == 1; });
//     scatter<&Worker::take>(workers, pages);  // workers[i]->take(pages[i]), all at once
namespace orrery {

namespace detail {

/// Makes a part on each PE that has some of them. Parks.
[[nodiscard]] group_handle group_of(std::vector<address> members);
void dismiss_group(const group_data& d);

void require_one_for_each(std::size_t members, std::size_t values);

/// Gives what `start` gives, or a future of what it throws: for one call of several, which are all
/// to be made.
template <class R, class Start>
[[nodiscard]] future<R> attempted(Start start) {
  try {
    return start();
  } catch (...) {
    auto state = future_access<R>::make_local(here_pe());
    state->error = std::current_exception();
    state->scheduler::sink::state = scheduler::sink::status::error;
    return future_access<R>::wrap(std::move(state));
  }
}

template <class T, auto F, class Pointer = decltype(F)>
struct scattering {
  static_assert(never<Pointer>, "orrery: scatter<&T::m>(group, values): m is a method with one parameter");
};
template <class T, auto F, class R, class P>
struct scatter_calls {
  using operation = method_operation<pointed_method<T, F>, R>;
  template <class V>
  static auto call(const group<T>& g, std::span<const V> values) {
    require_parameter<P>();
    require_result<R>();
    static_assert(std::is_constructible_v<std::remove_cvref_t<P>, const V&>,
                  "orrery: scatter<&T::m>(group, values): the parameter of the method cannot be made of one of these "
                  "values: give a vector of what it takes");
    require_one_for_each(g.size(), values.size());
    pe& self = here_pe();
    std::vector<future<value_t<R>>> all;
    all.reserve(values.size());
    for (std::size_t i = 0; i < values.size(); ++i)
      all.push_back(attempted<value_t<R>>([&] {
        return start_message<typed_handler<operation, P>, value_t<R>>(self, g[i].address(),
                                                                      std::remove_cvref_t<P>(values[i]));
      }));
    return when_all(std::move(all)).get();
  }
};
#define ORRERY_SCATTERING(qualifiers)                   \
  template <class T, auto F, class C, class R, class P> \
  struct scattering<T, F, R (C::*)(P) qualifiers> : scatter_calls<T, F, R, P> {}
ORRERY_SCATTERING();
ORRERY_SCATTERING(const);
ORRERY_SCATTERING(noexcept);
ORRERY_SCATTERING(const noexcept);
#undef ORRERY_SCATTERING

}  // namespace detail

/// Makes a group of processes that live (one that is gone is noticed by calls), ranked as they
/// stand here. Calls to it cost one message
/// for each PE, as those to any group. A process may be in several groups; what `member` says is of
/// that in which it was spawned. The group costs a small process on each PE with members until it
/// is dismissed; `destroy` ends its members, too. Parks. Throws usage_error for a null pointer,
/// node_lost, stopped.
template <class T>
[[nodiscard]] group<T> make_group(std::span<const remote<T>> members) {
  std::vector<address> all;
  all.reserve(members.size());
  for (const remote<T>& m : members) all.push_back(m.address());
  return detail::group_access::make<T>(detail::group_of(std::move(all)));
}
template <class T>
[[nodiscard]] group<T> make_group(const std::vector<remote<T>>& members) {
  return make_group(std::span<const remote<T>>(members));
}
template <class T>
[[nodiscard]] group<T> make_group(std::initializer_list<remote<T>> members) {
  return make_group(std::span<const remote<T>>(members.begin(), members.size()));
}

/// The members of a group for whose ranks `chosen(rank)` is true, as a group of their own, ranked
/// in the same order. As make_group.
template <class T, std::predicate<std::size_t> F>
[[nodiscard]] group<T> subgroup(const group<T>& g, F chosen) {
  std::vector<remote<T>> members;
  for (std::size_t rank = 0; rank < g.size(); ++rank)
    if (chosen(rank)) members.push_back(g[rank]);
  return make_group(members);
}

/// Ends a group that make_group or subgroup has made, not its members. Calls that were made before
/// go on. Parks. Throws process_gone if it was dismissed before, stopped; node_lost if a node with
/// members is lost, when it has ended on the others.
template <class T>
void dismiss(const group<T>& g) {
  detail::dismiss_group(detail::group_access::handle(g).data());
}

/// Calls a method of all members, that of rank i with values[i], one message each; returns when all
/// have finished: the results in the order of the ranks, or nothing. Parks. Throws usage_error
/// unless there is one value for each member, and of what members throw that of the lowest rank. A
/// member whose value cannot be sent, or whose node is lost, counts as one that throws.
template <auto Method, class T, class V>
auto scatter(const group<T>& g, std::span<const V> values) {
  return detail::scattering<T, Method>::call(g, values);
}
template <auto Method, class T, class V>
auto scatter(const group<T>& g, const std::vector<V>& values) {
  static_assert(!std::is_same_v<V, bool>,
                "orrery: scatter<&T::m>(group, values): std::vector<bool> has no array of values: "
                "use std::vector<char>");
  return detail::scattering<T, Method>::call(g, std::span<const V>(values));
}

}  // namespace orrery
