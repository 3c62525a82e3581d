// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/end_watches.hpp>
#include <orrery/process/function.hpp>
#include <orrery/process/group.hpp>
#include <orrery/process/promise.hpp>
#include <orrery/process/spawn.hpp>
#include <orrery/scheduler/reach.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstdint>
#include <type_traits>
#include <utility>

namespace orrery {

/// A watch that on_end has set: a small value to be copied, stored and sent.
class end_monitor {
 public:
  end_monitor() = default;
  end_monitor(const address& process, std::uint32_t set_on, std::uint32_t number) noexcept
      : process_(process), set_on_(set_on), number_(number) {}
  /// Takes the watch back. True: nothing was posted, nor will be. False: the end has come before
  /// and was told, or the watch was taken back already, or the program has ended and this is called
  /// in the destructor of a process; on the PE that has set it, the end is in the watcher's
  /// mailbox, or on its way there, when this returns. From any process; parks. Throws usage_error
  /// for one that was default-constructed, or outside of the runtime, stopped.
  bool cancel() const;
  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(process_); }
  friend bool operator==(const end_monitor&, const end_monitor&) noexcept = default;
  template <class A>
  void serialize(A& a) {
    a & process_ & set_on_ & number_;
  }

 private:
  address process_;
  std::uint32_t set_on_ = 0;  // PE
  std::uint32_t number_ = 0;
};

namespace detail {

/// How a watch is found that is taken back.
struct watch_key {
  static constexpr std::uint32_t unknown = ~std::uint32_t{0};
  std::uint32_t set_on = unknown;  ///< PE
  std::uint32_t number = 0;  ///< 0: it has none
  address linked{};  ///< not null: the process that is to end, too
  template <class A>
  void serialize(A& a) {
    a & set_on & number & linked;
  }
};
/// The future of the end of a process that is on this PE.
[[nodiscard]] future<ending> await_end_here(address process, watch_key key);
[[nodiscard]] future<ending> await_end(address process, watch_key key = {});
[[nodiscard]] watch_key new_watch(pe& self);
/// Takes back the watch that await_end has set from this PE with the number of that key, whose
/// future is broken then, if it has no value yet. Returns at once, and does not park.
void forget_end(pe& self, const address& process, const watch_key& key) noexcept;
void end_link(const address& a, const address& b);
[[nodiscard]] future<ending> or_loss(address process, future<ending> answer);
[[nodiscard]] future<ending> lost(address process);
/// Adds a watch of a process of this PE; false if it has ended.
[[nodiscard]] bool watch_end(pe& self, const address& process, end_watch& w);

/// Posts the end to a method of a process of the same PE, which has asked for that.
template <class W, auto M, class P>
struct posted_end final : end_watch {
  using handler = typed_handler<told<method_operation<pointed_method<W, M>, void>>, P>;
  std::uint32_t to_slot;
  std::uint32_t to_generation;

  posted_end(const address& to, std::uint32_t n) noexcept : to_slot(to.slot), to_generation(to.generation) {
    number = n;
    end = [](pe& self, end_watch* w, const ending* e) noexcept {
      const wire::unique_ptr<posted_end> own(static_cast<posted_end*>(w));
      if (e != nullptr) post(self, {self.id(), own->to_slot, own->to_generation}, *e);
    };
  }
  // As send_owned, but it waits for no room: an end is told once.
  static void post(pe& self, const address& to, const ending& e) noexcept try {
    slot* const s = self.find(to.slot, to.generation);
    if (s == nullptr) return;  // nobody wants to know any more
    scheduler::message* const m = handler::make_message(self, ending(e));
    m->source_pe = self.id();
    write_envelope(m->head, to, handler::instance, wire::payload_form::owned, nullptr, 0);
    self.push(*s, m);
  } catch (...) {
    self.failures().report_post(&handler::instance, std::current_exception());
  }
  /// On the PE of the watcher, when another one has heard of the end.
  static void arrive(address to, const ending& e) { post(here_pe(), to, e); }
};

/// Makes a function a process, and answers when that has ended.
template <class F, class... A>
struct watched_spawn_operation : spawn_function_operation<F, A...> {
  using result = future<ending>;
  static future<ending> run(pe& self, slot& s, void* nothing, callable<F> f, A... arguments) {
    using base = spawn_function_operation<F, A...>;
    return await_end_here(base::run(self, s, nothing, std::move(f), std::move(arguments)...).address(), {});
  }
};

template <auto M>
struct end_method {
  static_assert(
      never<std::integral_constant<decltype(M), M>>,
      "orrery: on_end<&Watcher::ended>(p, watcher): the method takes an `ending`, by value or const reference");
};
template <class W, class R, class P, R (W::*M)(P)>
  requires std::is_same_v<std::remove_cvref_t<P>, ending>
struct end_method<M> {
  using object = W;
  using parameter = P;
};
template <class W, class R, class P, R (W::*M)(P) noexcept>
  requires std::is_same_v<std::remove_cvref_t<P>, ending>
struct end_method<M> {
  using object = W;
  using parameter = P;
};

template <class A, class B>
void end_with(remote<A> first, remote<B> then);
/// Throws usage_error, which names the call, if one is null.
void require_both(const address& one, const address& other, const char* call);
/// Returns when what was sent to that PE before has come, or it is lost.
void await_arrival(const address& at);

}  // namespace detail

/// The end of a process, as a future: why it has ended. For whoever may wait, follow it (`then`),
/// or take the first of several (`when_any`):
///
///     auto end = end_of(server);
///     ...
///     if (end.get().failed()) ...
///
/// A process that has ended already gives end_cause::gone, whatever it was; see watched_spawn. The
/// loss of its node is an end, no exception. Parks the caller while the request is sent. Throws
/// usage_error, stopped; the future gets `stopped` when the program ends. An exception of a watched
/// function is not reported.
template <class T>
[[nodiscard]] future<ending> end_of(const remote<T>& p) {
  return detail::await_end(p.address());
}

/// Runs `f(args...)` as a process, as spawn does, and gives a future of its end, whose `process` it
/// was: for who starts again what has failed. Nothing is missed, as it would be where the function
/// ends before end_of has come to its PE. Parks while the request is sent. Throws as spawn.
template <class F, class... A>
  requires std::invocable<std::decay_t<F>, detail::travels_t<A>...>
[[nodiscard]] future<ending> watched_spawn(placement where, F&& f, A&&... arguments) {
  using Fn = std::decay_t<F>;
  (detail::require_parameter<detail::travels_t<A>>(), ...);
  static_assert(
      detail::callable_travels<Fn>,
      "orrery: watched_spawn(placement, f, args...): f cannot be sent to another node, as it is a lambda with "
      "captures or has state without serialize(): pass what it needs as arguments behind it");
  using operation = detail::watched_spawn_operation<Fn, detail::travels_t<A>...>;
  using handler = detail::typed_handler<operation, detail::callable<Fn>, detail::travels_t<A>...>;
  const address to = detail::pe_address(where.resolve());
  try {
    return detail::or_loss(
        to, detail::start_message<handler, ending>(detail::here_pe(), to, detail::callable<Fn>{std::forward<F>(f)},
                                                   detail::travels_t<A>(std::forward<A>(arguments))...));
  } catch (const node_lost&) {
    return detail::lost(to);
  }
}

/// `on_end<&Watcher::ended>(p, w)`: when p has ended, `w->ended(ending)` is posted, once; at once
/// if p is gone; not if w is. Where p, w and the caller are on one PE, that costs 48 bytes until
/// then; else as end_of. Nothing is posted when the program ends, or if the caller's node is lost
/// before. The monitor takes the watch back:
///
///     auto watch = on_end<&Watcher::ended>(server, this_process<Watcher>());
///     ...
///     watch.cancel();
///
/// Throws as end_of, and usage_error if `w` is null.
template <auto M, class T, class W>
end_monitor on_end(const remote<T>& p, const remote<W>& w) {
  using method = detail::end_method<M>;
  using watch = detail::posted_end<typename method::object, M, typename method::parameter>;
  detail::pe& self = detail::here_pe();
  detail::require_both(p.address(), w.address(), "on_end");
  const detail::watch_key key = detail::new_watch(self);
  const end_monitor monitor(p.address(), key.set_on, key.number);
  if (p.address().pe == self.id() && w.address().pe == self.id()) {
    auto one = wire::make_unique<watch>(w.address(), key.number);
    if (detail::watch_end(self, p.address(), *one)) {
      one.release();
    } else {
      watch::post(self, w.address(), ending{p.address(), end_cause::gone, {}});
    }
    return monitor;
  }
  auto end = detail::await_end(p.address(), key);
  detail::when_done(self, std::move(end), [to = w.address()](detail::pe&, detail::future_state<ending>& s) {
    s.taken = true;
    if (s.scheduler::sink::state == scheduler::sink::status::value && scheduler::reaches(detail::here_pe(), to.pe))
      detail::tell_call<&watch::arrive>(orrery::pe(to.pe), to, s.value);
  });
  return monitor;
}

/// When one of the two ends, the other one is destroyed; but not if it was a function that
/// returned. One that is gone already has ended so. Holds from the return of this call on, also
/// where either node is lost, whatever becomes of the caller. Parks. Throws usage_error, node_lost,
/// stopped.
template <class A, class B>
void link(const remote<A>& a, const remote<B>& b) {
  detail::require_both(a.address(), b.address(), "link");
  call<&detail::end_with<A, B>>(pe(b.address().pe), a, b);
  call<&detail::end_with<B, A>>(pe(a.address().pe), b, a);
}

/// The two end for themselves again, however often they were linked. Holds from the return of this
/// call on; what has ended before may still take the other one along. Parks. Throws usage_error,
/// stopped.
template <class A, class B>
void unlink(const remote<A>& a, const remote<B>& b) {
  detail::end_link(a.address(), b.address());
}

namespace detail {

template <class A, class B>
void end_with(remote<A> first, remote<B> then) {
  pe& self = here_pe();
  when_done(self, await_end(first.address(), watch_key{.set_on = self.id(), .linked = then.address()}),
            [then](pe& at, future_state<ending>& s) {
              s.taken = true;
              if (s.scheduler::sink::state != scheduler::sink::status::value || !s.value.failed()) return;
              if (at.find(then.address().slot, then.address().generation) == nullptr) return;
              auto f = start_destroy(then);
              future_access<void>::disregard(std::move(f));
            });
  await_arrival(first.address());
}

}  // namespace detail
}  // namespace orrery
