// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/array.hpp>
#include <orrery/process/priority.hpp>

#include <cstdint>
#include <utility>

// Messages to elements that go before others, or behind all others; see process/priority.hpp.
//
//     post(grid[3, 4], orrery::urgent)->stop();
//     int n = call(grid[3, 4], orrery::urgent)->progress();
namespace orrery {

namespace detail {

/// As send_element, at a level that is not the normal one: always by the way of messages that are
/// routed, which also finds an element that has moved on while its message waited.
template <class Message, class T, class Index, class... A>
bool send_element_at(priority level, pe& self, const element_name<T, Index>& to, scheduler::sink* sink, patience p,
                     A&&... args) {
  static_assert(!Message::ordered,
                "orrery: the order of this method's messages is kept (keep_order), so that none goes before another: "
                "send it without a level");
  if (level == priority::normal) return send_element<Message>(self, to, sink, p, std::forward<A>(args)...);
  for (;;) {
    bool again = false;
    if (!index_sender<Index>::has_room(self, to.array, to.index, p) ||
        !send_remote<Message>(self, to, sink, p, again, kind_of(level), std::forward<A>(args)...))
      return false;
    if (!again) return true;
  }
}

// The meaning of a call of a method of `grid[i]` at a level.
template <class T, class Index>
struct leveled_element_modes {
  using name = element_name<T, Index>;
  using route = element_route<T, Index, name>;
  using normal = element_modes<T, Index>;
  template <class M, class R, class... P>
  using message = typename normal::template message<M, R, P...>;

  struct start {
    using target = leveled_target<name>;
    template <class M, class R, class... P>
    static future<value_t<R>> invoke(const target& t, P&&... args) {
      using m = message<M, R, P...>;
      pe& self = here_pe();
      auto state = future_access<value_t<R>>::make_routed(self, route(t.to), m::routed);
      auto travelling = future_access<value_t<R>>::make_hold(state);
      send_element_at<m>(t.level, self, t.to, state.get(), patience::may_wait, std::forward<P>(args)...);
      travelling.release();
      return future_access<value_t<R>>::wrap(std::move(state));
    }
  };
  struct call {
    using target = leveled_target<name>;
    template <class M, class R, class... P>
    static value_t<R> invoke(const target& t, P&&... args) {
      here_pe().require_process();
      return start::template invoke<M, R, P...>(t, std::forward<P>(args)...).get();
    }
  };
  template <patience Patience>
  struct post {
    using target = leveled_target<name>;
    template <class M, class R, class... P>
    static auto invoke(const target& t, P&&... args) {
      const bool sent =
          send_element_at<message<M, R, P...>>(t.level, here_pe(), t.to, nullptr, Patience, std::forward<P>(args)...);
      if constexpr (Patience == patience::must_not) return sent;
    }
  };
};

}  // namespace detail

/// `post(e, urgent)->m(args...)`: as post(e), at that level, wherever the element is. An element
/// that moves takes its messages along, with their levels. A method whose order is kept has no
/// level (keep_order); a message to an element of another program has none on its way to a PE of
/// that program.
template <class T, class Index>
[[nodiscard]] auto post(const element_ptr<T, Index>& e, priority level) {
  using mode = typename detail::leveled_element_modes<T, Index>::template post<detail::patience::may_wait>;
  return detail::bound_target<mode, T>({e.name(), level});
}
/// The same, as try_post(e): false where it would have to wait.
template <class T, class Index>
[[nodiscard]] auto try_post(const element_ptr<T, Index>& e, priority level) {
  using mode = typename detail::leveled_element_modes<T, Index>::template post<detail::patience::must_not>;
  return detail::bound_target<mode, T>({e.name(), level});
}
/// `start(e, urgent)->m(args...)`: as start(e), at that level.
template <class T, class Index>
[[nodiscard]] auto start(const element_ptr<T, Index>& e, priority level) {
  return detail::bound_target<typename detail::leveled_element_modes<T, Index>::start, T>({e.name(), level});
}
/// `call(e, urgent)->m(args...)`: as `e->m(args...)`, at that level.
template <class T, class Index>
[[nodiscard]] auto call(const element_ptr<T, Index>& e, priority level) {
  return detail::bound_target<typename detail::leveled_element_modes<T, Index>::call, T>({e.name(), level});
}

}  // namespace orrery
