// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/detail/result_sink.hpp>
#include <orrery/process/detail/send.hpp>
#include <orrery/process/time_limit.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <concepts>
#include <coroutine>
#include <type_traits>
#include <utility>

namespace orrery {

template <class T>
class future;

namespace detail {

/// A call ended with an exception, and its future ends, or has ended, before anybody took that:
/// reports it as that of a post.
void report_untaken(scheduler::sink& s) noexcept;

// The state of a future: a sink on the heap of the PE that made the call. Two may hold it: the
// future, and the call that is on its way. Only that PE touches it, so the count is plain.
struct future_state_base {
  std::uint32_t holders = 1;
  bool queued = false;  ///< the continuation is in the run queue
  bool taken = false;  ///< nobody has to be told of its exception
  bool awaited = false;  ///< a method or coroutine waits for it, or has not gone on since
  void (*continuation)(pe&, future_state_base&) = nullptr;  ///< then, when_all, co_await
  void* continuation_data = nullptr;
  void (*destroy)(future_state_base*) noexcept = nullptr;
  scheduler::sink* k = nullptr;

  void hold() noexcept { ++holders; }
  void drop() noexcept {
    if (--holders == 0) destroy(this);
  }
};

template <class T>
struct future_state : future_state_base, typed_sink<T> {
  future_state() { begin(); }
  explicit future_state(stays_here h) : typed_sink<T>(h) { begin(); }
  ~future_state() {
    if (this->scheduler::sink::state == scheduler::sink::status::error && !taken) [[unlikely]]
      report_untaken(*this);
  }
  decltype(auto) take() {
    taken = true;
    return typed_sink<T>::take();
  }
  void begin() noexcept {
    k = this;
    destroy = [](future_state_base* s) noexcept { delete static_cast<future_state*>(s); };
    this->on_done = [](pe& self, scheduler::sink& s) {
      auto& own = static_cast<future_state&>(static_cast<typed_sink<T>&>(s));
      if (own.continuation == nullptr) [[likely]]
        return own.drop();
      go_on(self, own);
    };
  }

 private:
  [[gnu::noinline]] static void go_on(pe& self, future_state& own) {
    if (!own.queued) {
      own.queued = true;  // not here, in the middle of the method that has just ended
      self.run_later(own);
      return;
    }
    const struct dropped_at_end {
      future_state& s;
      ~dropped_at_end() { s.drop(); }
    } end{own};  // also if the continuation throws
    std::exchange(own.continuation, nullptr)(self, own);
  }
};

/// For a call that finds its process on its way.
template <class T, class Route>
struct routed_future_state final : future_state<T> {
  Route way;
  explicit routed_future_state(const Route& r) : way(r) {
    this->route = &way;
    this->destroy = [](future_state_base* s) noexcept {
      delete static_cast<routed_future_state*>(static_cast<future_state<T>*>(s));
    };
  }
};

/// The calls behind a future of several results, for probes that follow waits.
struct gathered_parts : scheduler::call_route {
  address follow(pe&, std::span<const std::byte>) const override { return {}; }
  [[nodiscard]] std::string text() const override { return {}; }

 protected:
  ~gathered_parts() = default;
};

/// The wait behind a future that a continuation completes: first for the future that it follows,
/// then for what the continuation waits for in its turn. Each is needed for the result.
struct followed_wait final : gathered_parts {
  const scheduler::sink* on = nullptr;      ///< a future; null: `in`, or nothing that is known
  const scheduler::fiber* in = nullptr;  ///< where the continuation runs, and may wait
  [[nodiscard]] const scheduler::sink* part(std::size_t i) const noexcept override;
};

/// The continuation has run.
struct ends_run {
  followed_wait& wait;
  explicit ends_run(followed_wait& of) noexcept : wait(of) {}
  ends_run(const ends_run&) = delete;
  ends_run& operator=(const ends_run&) = delete;
  ~ends_run() { wait.in = nullptr; }
};

/// The state of what then() gives.
template <class T>
struct following_state final : future_state<T> {
  followed_wait wait;
  explicit following_state(const scheduler::sink& from) : future_state<T>(stays_here{}) {
    wait.on = &from;
    this->route = &wait;
    this->destroy = [](future_state_base* s) noexcept {
      delete static_cast<following_state*>(static_cast<future_state<T>*>(s));
    };
  }
};

template <class T>
struct future_access;

/// The type whose future then() gives: f may return a future itself.
template <class R>
struct unwrapped {
  using type = R;
};
template <class T>
struct unwrapped<future<T>> {
  using type = T;
};
/// The result of f for a result of that type; f has no parameter where there is none.
template <class F, class T>
struct continued : std::invoke_result<F, T> {};
template <class F>
struct continued<F, void> : std::invoke_result<F> {};
template <class F, class T>
using then_t = typename unwrapped<typename continued<F, T>::type>::type;

[[noreturn]] void throw_other_pe(const scheduler::sink& k);
inline void require_same_pe(const scheduler::sink& k) {
  pe* const here = scheduler::current_pe;
  if (here == nullptr || here->id() != k.home) [[unlikely]]
    throw_other_pe(k);
  if (k.state != scheduler::sink::status::waiting) here->order().take_result(k);
}
[[noreturn]] void throw_awaited();
/// Throws usage_error if a method or coroutine waits for the result already: it would never be
/// woken, or would find no result.
inline void require_free(const future_state_base& s) {
  if (s.awaited) [[unlikely]]
    throw_awaited();
}
/// While it lives, the running method waits for the result.
struct result_wait {
  future_state_base& of;
  explicit result_wait(future_state_base& s) noexcept : of(s) { of.awaited = true; }
  result_wait(const result_wait&) = delete;
  result_wait& operator=(const result_wait&) = delete;
  ~result_wait() { of.awaited = false; }
};
/// The fiber that the caller runs on.
[[nodiscard]] const scheduler::fiber* running_fiber(const pe& self) noexcept;
/// The wait behind `s` is for something else now: a probe is to follow it from its waiter.
void suspect_waiter(pe& self, const scheduler::sink& s);
/// The continuation of a future that a coroutine waits for.
void resume_coroutine(pe& self, future_state_base& s);
/// A future ends without its result. While an exception unwinds the stack, that one is what is told
/// of.
void end_untaken(future_state_base& s) noexcept;
/// Gives up a future on another PE than its own: tells that one to.
void drop_elsewhere(future_state_base& s) noexcept;
[[nodiscard]] std::int64_t deadline_after(time_limit d) noexcept;

}  // namespace detail

/// The result of a call that was started: it arrives later. Movable; belongs to the PE on which the
/// call was made and is used there only (it cannot be sent). Dropping a future does not cancel its
/// call; a result nobody wants is discarded, an exception that nobody takes is reported like that
/// of a post.
///
/// get, wait, wait_for and co_await may park the calling process, never its PE.
template <class T>
class [[nodiscard]] future {
 public:
  using value_type = T;

  future() noexcept = default;
  future(future&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  future& operator=(future&& other) noexcept {
    future taken(std::move(other));
    std::swap(state_, taken.state_);
    return *this;
  }
  ~future() {
    if (state_ == nullptr) return;
    if (const detail::pe* here = scheduler::current_pe; here != nullptr && here->id() != state_->home) [[unlikely]] {
      detail::drop_elsewhere(*state_);
    } else {
      // A coroutine that is destroyed while it waits takes its future along; nobody is to resume
      // it.
      if (state_->continuation == &detail::resume_coroutine) [[unlikely]]
        state_->continuation = nullptr;
      if (state_->scheduler::sink::state != scheduler::sink::status::value) [[unlikely]]
        detail::end_untaken(*state_);
      state_->drop();
    }
  }

  /// False for a future without a call: made by default, moved from, or read by get().
  [[nodiscard]] bool valid() const noexcept { return state_ != nullptr; }
  /// The same. There is no more to compare: no two futures are of one call.
  [[nodiscard]] explicit operator bool() const noexcept { return valid(); }
  /// True when get will not wait.
  [[nodiscard]] bool ready() const noexcept {
    return state_ != nullptr && state_->state != scheduler::sink::status::waiting;
  }
  /// Parks until the result is there. Throws deadlock_error, stopped, usage_error (also if another
  /// method or coroutine waits for this very future).
  void wait() const {
    check();
    if (!ready()) {
      detail::pe& self = detail::here_pe();
      self.require_process();
      const detail::result_wait here(*state_);
      self.wait(*state_);
    }
  }
  /// As wait, but at most for `d`; false if there is still no result.
  [[nodiscard]] bool wait_for(time_limit d) const {
    check();
    if (ready()) return true;
    detail::pe& self = detail::here_pe();
    self.require_process();
    const detail::result_wait here(*state_);
    return self.wait_until(*state_, detail::deadline_after(d));
  }
  /// The result, once: parks until it is there, rethrows what the call ended with. The future is
  /// empty afterwards.
  T get() {
    wait();
    future done(std::move(*this));
    return done.state_->take();
  }
  /// Runs f(result), or f() where there is none, when the result is there, on this PE, and gives a
  /// future of what f returns. f runs as a process of its own, which may call others and wait; if
  /// the result is there already it runs at once, in the caller. An exception of the call passes f
  /// by and goes to the new future, as does one of f. If f returns a future itself, the new one is
  /// of its result. Throws usage_error if a method or coroutine waits for this future, and leaves
  /// it as it was.
  template <class F>
  auto then(F f) -> future<detail::then_t<F, T>>;

  // co_await: parks the calling process where it stands, or suspends a coroutine.
  [[nodiscard]] bool await_ready() const {
    check();
    return ready();
  }
  void await_suspend(std::coroutine_handle<> h) noexcept {
    state_->awaited = true;
    state_->continuation_data = h.address();
    state_->continuation = &detail::resume_coroutine;
  }
  T await_resume() {
    future done(std::move(*this));
    return done.state_->take();
  }

 private:
  template <class>
  friend struct detail::future_access;
  explicit future(detail::future_state<T>* s) noexcept : state_(s) {}
  void check() const {
    if (state_ == nullptr)
      throw usage_error(errc::null_pointer, verbatim,
                        "future: it has no call: it was default-constructed or moved from, or get was called before");
    detail::require_same_pe(*state_);
    detail::require_free(*state_);
  }

  detail::future_state<T>* state_ = nullptr;
};

namespace detail {

template <class T>
struct future_access {
  using state = future_state<T>;
  struct drop {
    void operator()(state* s) const noexcept { s->drop(); }
  };
  using owner = wire::unique_ptr<state, drop>;

  static owner make(pe& self, address to, const scheduler::handler& h) {
    owner s(new state);
    prepare(*s, self, to, h);
    return s;
  }
  template <class Route>
  static owner make_routed(pe& self, const Route& way, const scheduler::handler& h) {
    owner s(new routed_future_state<T, Route>(way));
    prepare(*s, self, address{}, h);
    return s;
  }
  /// A state without a call behind it, which `resolve` completes.
  static owner make_local(pe& self) {
    owner s(new state(stays_here{}));
    s->home = self.id();
    return s;
  }
  /// The same, for the result of what follows a future.
  static following_state<T>* make_following(pe& self, const scheduler::sink& from) {
    auto* const s = new following_state<T>(from);
    s->home = self.id();
    return s;
  }
  static owner make_hold(const owner& s) noexcept {
    s->hold();
    return owner(s.get());
  }
  static future<T> wrap(owner s) noexcept { return future<T>(s.release()); }
  static state* get(const future<T>& f) noexcept { return f.state_; }
  /// Throws usage_error if the future has no call, is another PE's, or somebody waits for it.
  static void check(const future<T>& f) { f.check(); }
  /// Gives up the result, and the exception if it is one: nobody has to be told.
  static void disregard(future<T> f) noexcept { f.state_->taken = true; }
};

/// Sends an asynchronous message: the future of its result. `h`: as for send_owned_as.
template <class Handler, class R, class... P>
future<R> start_message_as(const scheduler::handler& h, pe& self, address to, P&&... arguments) {
  auto state = future_access<R>::make(self, to, h);
  // given up to the reply, if the message was sent
  auto travelling = future_access<R>::make_hold(state);
  send_owned_as<Handler>(h, self, to, state.get(), true, std::forward<P>(arguments)...);
  travelling.release();
  return future_access<R>::wrap(std::move(state));
}
template <class Handler, class R, class... P>
future<R> start_message(pe& self, address to, P&&... arguments) {
  return start_message_as<Handler, R>(Handler::instance, self, to, std::forward<P>(arguments)...);
}

/// Completes a state made by make_local with what f returns or throws. Takes over one hold.
template <class T, class F>
void resolve(pe& self, future_state<T>* s, F&& f) {
  try {
    if constexpr (std::is_void_v<T>) {
      f();
    } else {
      new (s->storage) T(f());
    }
    s->scheduler::sink::state = scheduler::sink::status::value;
  } catch (...) {
    s->error = std::current_exception();
    s->scheduler::sink::state = scheduler::sink::status::error;
  }
  self.complete(*s);
}

/// Attaches `f(pe&, future_state<T>&)`, called once when the result is there (now, if it is). Keeps
/// the state alive until then.
template <class T, class F>
void when_done(pe& self, future<T> from, F f) {
  auto* s = future_access<T>::get(from);
  if (from.ready()) {
    f(self, *s);
    return;
  }
  struct hook {
    future<T> from;
    F f;
  };
  s->continuation_data = new hook{std::move(from), std::move(f)};
  s->continuation = [](pe& at, future_state_base& base) {
    const wire::unique_ptr<hook> h(static_cast<hook*>(base.continuation_data));
    h->f(at, static_cast<future_state<T>&>(base));
  };
}

/// Completes a state made by make_following with what f returns or throws, or with what the future
/// ends with that f returns. Takes over one hold.
template <class R, class F>
void resolve_with(pe& self, following_state<typename unwrapped<R>::type>* s, F&& f) {
  using T = typename unwrapped<R>::type;
  s->wait.on = nullptr;
  s->wait.in = running_fiber(self);
  if constexpr (std::is_same_v<R, T>) {
    resolve<T>(self, s, [&]() -> T {
      const ends_run run(s->wait);
      return f();
    });
  } else {
    try {
      R later = [&] {
        const ends_run run(s->wait);
        return f();
      }();
      future_access<T>::check(later);
      s->wait.on = future_access<T>::get(later);
      if (!later.ready()) suspect_waiter(self, *s);
      when_done(self, std::move(later), [s](pe& at, auto& from) {
        s->wait.on = nullptr;
        resolve<T>(at, s, [&]() -> T { return from.take(); });
      });
    } catch (...) {
      s->wait.on = nullptr;
      resolve<T>(self, s, [&]() -> T { throw; });
    }
  }
}

}  // namespace detail

template <class T>
template <class F>
auto future<T>::then(F f) -> future<detail::then_t<F, T>> {
  using R = typename detail::continued<F, T>::type;
  using V = detail::then_t<F, T>;
  check();
  detail::pe& self = detail::here_pe();
  auto* const n = detail::future_access<V>::make_following(self, *state_);
  typename detail::future_access<V>::owner next(n);
  next->hold();
  detail::when_done(self, std::move(*this), [f = std::move(f), n](detail::pe& at, auto& s) mutable {
    detail::resolve_with<R>(at, n, [&]() -> R {
      if constexpr (std::is_void_v<T>) {
        s.take();
        return f();
      } else {
        return f(s.take());
      }
    });
  });
  return detail::future_access<V>::wrap(std::move(next));
}

}  // namespace orrery
