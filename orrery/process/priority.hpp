// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/call.hpp>
#include <orrery/process/detail/bound_target.hpp>
#include <orrery/process/function.hpp>
#include <orrery/process/remote.hpp>

#include <cstdint>
#include <utility>

// Messages that go before others, or behind all others.
//
//     post(worker, orrery::urgent)->stop();              // before whatever else waits there
//     start(cache, orrery::background)->tidy();          // when that PE has nothing else to do
//     int n = call(worker, orrery::urgent)->progress();
//     send(function, Stop{}, orrery::urgent);

namespace orrery {

/// The level of a message. Where it arrives an urgent one goes before all that wait: in the mailbox
/// of its process, and, with its process, before the others of the PE. A message for the background
/// comes into the mailbox when the PE has nothing else to do, as when_idle; on a PE that always has
/// something to do, it never comes. Messages of one level from one process to another arrive in the
/// order sent. A method that runs is not interrupted, and nothing overtakes on the way.
enum class priority : std::uint8_t { urgent, normal, background };

inline constexpr priority urgent = priority::urgent;
inline constexpr priority background = priority::background;

namespace detail {

[[nodiscard]] constexpr wire::record_kind kind_of(priority p) noexcept {
  using wire::record_kind;
  return p == priority::urgent       ? record_kind::urgent
         : p == priority::background ? record_kind::background
                                     : record_kind::message;
}

/// As send_owned, for a message of any level, whatever the types of its arguments.
bool send_at_level(pe& self, address to, const scheduler::handler& h, scheduler::sink* sink, bool may_wait,
                   const arguments_ref& arguments);

template <class Handler, class... P>
bool send_leveled(priority level, pe& self, address to, scheduler::sink* sink, bool may_wait, P&&... arguments) {
  if (level == priority::normal) return send_owned<Handler>(self, to, sink, may_wait, std::forward<P>(arguments)...);
  require_sendable<std::remove_cvref_t<P>...>();
  const auto size = [&] { return orrery::wire_size(std::as_const(arguments)...); };
  const auto write = [&](orrery::writer& w) { (orrery::write(w, std::as_const(arguments)), ...); };
  const auto move = [&](void* at) { Handler::make_owned(at, std::forward<P>(arguments)...); };
  return send_at_level(
      self, to, Handler::instance, sink, may_wait,
      arguments_ref(size, write, move, sizeof(typename Handler::owned), pages_beside(arguments...), kind_of(level)));
}

/// A process, or another thing with an address, and the level of a message to it.
template <class To>
struct leveled_target {
  To to;
  priority level;
};

struct leveled_call_mode {
  using target = leveled_target<address>;

  template <class M, class R, class... P>
  static value_t<R> invoke(const target& t, P&&... arguments) {
    pe& self = here_pe();
    if (t.level != priority::background) {  // one to an idle process of this PE is executed at once
      slot* const s = t.to.pe == self.id() ? self.find(t.to.slot, t.to.generation) : nullptr;
      if (t.level == priority::normal || (s != nullptr && s->state == scheduler::process_state::idle))
        return call_mode::invoke<M, R, P...>(t.to, std::forward<P>(arguments)...);
    }
    using handler = typed_handler<method_operation<M, R>, P...>;
    typed_sink<value_t<R>> k;
    self.require_process();
    begin_call_at(kind_of(t.level), handler::instance, self, t.to, k, std::forward<P>(arguments)...);
    self.wait(k);
    return k.take();
  }
};

struct leveled_start_mode {
  using target = leveled_target<address>;

  template <class M, class R, class... P>
  static future<value_t<R>> invoke(const target& t, P&&... arguments) {
    using handler = typed_handler<method_operation<M, R>, P...>;
    pe& self = here_pe();
    auto state = future_access<value_t<R>>::make(self, t.to, handler::instance);
    auto travelling = future_access<value_t<R>>::make_hold(state);
    send_leveled<handler>(t.level, self, t.to, state.get(), true, std::forward<P>(arguments)...);
    travelling.release();
    return future_access<value_t<R>>::wrap(std::move(state));
  }
};

template <bool MayWait>
struct leveled_post_mode {
  using target = leveled_target<address>;

  template <class M, class R, class... P>
  static auto invoke(const target& t, P&&... arguments) {
    const bool sent = send_leveled<typed_handler<method_operation<M, R>, P...>>(t.level, here_pe(), t.to, nullptr,
                                                                                MayWait, std::forward<P>(arguments)...);
    if constexpr (!MayWait) return sent;
  }
};

}  // namespace detail

/// `post(p, urgent)->m(args...)`: as post(p), at that level. Parks and throws as that does.
template <class T>
[[nodiscard]] auto post(const remote<T>& p, priority level) {
  return detail::bound_target<detail::leveled_post_mode<true>, T>({p.address(), level});
}
/// The same, as try_post(p): false where it would have to wait.
template <class T>
[[nodiscard]] auto try_post(const remote<T>& p, priority level) {
  return detail::bound_target<detail::leveled_post_mode<false>, T>({p.address(), level});
}
/// `start(p, urgent)->m(args...)`: as start(p), at that level. Its answer has no level.
template <class T>
[[nodiscard]] auto start(const remote<T>& p, priority level) {
  return detail::bound_target<detail::leveled_start_mode, T>({p.address(), level});
}
/// `call(p, urgent)->m(args...)`: as `p->m(args...)`, at that level.
template <class T>
[[nodiscard]] auto call(const remote<T>& p, priority level) {
  return detail::bound_target<detail::leveled_call_mode, T>({p.address(), level});
}

/// As send(to, value, tag), at that level: `receive` finds an urgent message before all others of
/// its type and tag.
template <class T>
void send(const remote<function>& to, T value, std::uint64_t tag, priority level) {
  detail::require_message<T>();
  detail::send_leveled<detail::message_handler<T>>(level, detail::here_pe(), to.address(), nullptr, true,
                                                   std::move(tag), std::move(value));
}
template <class T>
void send(const remote<function>& to, T value, priority level) {
  send(to, std::move(value), 0, level);
}
/// The same, as try_send: false where it would have to wait.
template <class T>
[[nodiscard]] bool try_send(const remote<function>& to, T value, std::uint64_t tag, priority level) {
  detail::require_message<T>();
  return detail::send_leveled<detail::message_handler<T>>(level, detail::here_pe(), to.address(), nullptr, false,
                                                          std::move(tag), std::move(value));
}
template <class T>
[[nodiscard]] bool try_send(const remote<function>& to, T value, priority level) {
  return try_send(to, std::move(value), 0, level);
}

}  // namespace orrery
