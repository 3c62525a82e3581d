// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/group.hpp>
#include <orrery/process/priority.hpp>

#include <utility>

// Messages to all members of a group that go before others, or behind all others; see priority.hpp.
//
//     post(workers, orrery::urgent)->stop();
//     std::vector<int> all = call(workers, orrery::urgent)->progress();
namespace orrery {

namespace detail {

/// Calling a method of each member at a level, which travels before the other arguments.
template <class M, class R, class... P>
struct leveled_broadcast_method : broadcast_method<M, R, P...> {
  using base = broadcast_method<M, R, P...>;
  static decltype(auto) run(pe& self, slot& s, typename base::object* o, const priority&,
                            const std::remove_cvref_t<P>&... arguments) {
    return base::run(self, s, o, arguments...);
  }
  static wire::record_kind level_of(const void* const* arguments) noexcept {
    return kind_of(*static_cast<const priority*>(arguments[0]));
  }
};

struct leveled_group_call_mode {
  using target = leveled_target<const group_handle*>;
  template <class M, class R, class... P>
  static auto invoke(const target& t, P&&... arguments) {
    const group_data& d = t.to->data();
    auto results =
        call_parts<leveled_broadcast_method<M, R, P...>, gather_fold, priority, P...>(d, t.level, arguments...);
    return merge<value_t<R>>(d, results);
  }
};

struct leveled_group_start_mode {
  using target = leveled_target<const group_handle*>;
  template <class M, class R, class... P>
  static auto invoke(const target& t, P&&... arguments) {
    return start_parts<leveled_broadcast_method<M, R, P...>, gather_fold, priority, P...>(
        *t.to, [](const group_data& d, auto& results) { return merge<value_t<R>>(d, results); }, t.level, arguments...);
  }
};

struct leveled_group_post_mode {
  using target = leveled_target<const group_handle*>;
  template <class M, class R, class... P>
  static void invoke(const target& t, P&&... arguments) {
    post_parts<leveled_broadcast_method<M, R, P...>, gather_fold, priority, P...>(t.to->data(), t.level, arguments...);
  }
};

}  // namespace detail

/// `post(g, urgent)->m(args...)`: as post(g), at that level at each member. Messages of one level
/// from one process to a member arrive in the order sent, whether sent to the member or to its
/// group. Used at once, in the same expression. Parks and throws as post(g).
template <class T>
[[nodiscard]] auto post(const group<T>& g, priority level) {
  return detail::bound_target<detail::leveled_group_post_mode, T>({&detail::group_access::handle(g), level});
}
/// `start(g, urgent)->m(args...)`: as start(g), at that level. The answers have none.
template <class T>
[[nodiscard]] auto start(const group<T>& g, priority level) {
  return detail::bound_target<detail::leveled_group_start_mode, T>({&detail::group_access::handle(g), level});
}
/// `call(g, urgent)->m(args...)`: as `g->m(args...)`, at that level.
template <class T>
[[nodiscard]] auto call(const group<T>& g, priority level) {
  return detail::bound_target<detail::leveled_group_call_mode, T>({&detail::group_access::handle(g), level});
}

}  // namespace orrery
