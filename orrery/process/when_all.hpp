// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/future.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

// One future for several: of all their results, or of the first one.
namespace orrery {

namespace detail {

/// Calls f(future) for each of a vector or a tuple of futures.
template <class Futures, class F>
void each_future(Futures& all, F f) {
  if constexpr (requires { all.size(); }) {
    for (auto& one : all) f(one);
  } else {
    std::apply([&](auto&... one) { (f(one), ...); }, all);
  }
}

/// Their results, in the order of the futures.
template <class R, class T>
R take_results(std::vector<future<T>>& all) {
  if constexpr (std::is_void_v<T>) {
    for (auto& f : all) f.get();
  } else {
    R values;
    values.reserve(all.size());
    for (auto& f : all) values.push_back(f.get());
    return values;
  }
}
template <class R, class... T>
R take_results(std::tuple<future<T>...>& all) {
  return std::apply([](auto&... f) { return R{f.get()...}; }, all);
}

/// Futures whose results become one. Owned by itself until the last of them has ended. `Futures`: a
/// vector or a tuple of them.
template <class R, class Futures>
struct joined_futures final : gathered_parts {
  std::size_t left = 1;  // one for who attaches them
  Futures all;
  future_state<R>* target;

  joined_futures(Futures futures, future_state<R>* to) : all(std::move(futures)), target(to) { to->route = this; }

  [[nodiscard]] const scheduler::sink* part(std::size_t i) const noexcept override {
    const scheduler::sink* found = nullptr;
    each_future(all, [&]<class T>(const future<T>& f) {
      if (found == nullptr && !f.ready() && i-- == 0) found = future_access<T>::get(f);
    });
    return found;
  }
  void attach() {
    each_future(all, [this]<class T>(future<T>& f) {
      if (f.ready()) return;
      ++left;
      auto* s = future_access<T>::get(f);
      s->continuation_data = this;
      s->continuation = [](pe& at, future_state_base& base) {
        static_cast<joined_futures*>(base.continuation_data)->one_ended(at);
      };
    });
  }
  void one_ended(pe& at) {
    at.order().give(this);  // what follows comes after all of them
    if (--left != 0) return;
    at.order().take(this);
    at.order().forget(this);
    const wire::unique_ptr<joined_futures> self(this);
    target->route = nullptr;
    // the first exception stands for all
    each_future(all, []<class T>(future<T>& f) { future_access<T>::get(f)->taken = true; });
    resolve<R>(at, target, [&]() -> R { return take_results<R>(all); });
  }
};

template <class R, class Futures>
future<R> join_futures(Futures futures) {
  pe& self = here_pe();
  auto state = future_access<R>::make_local(self);
  state->hold();
  auto* g = new joined_futures<R, Futures>(std::move(futures), state.get());
  g->attach();
  g->one_ended(self);
  return future_access<R>::wrap(std::move(state));
}

}  // namespace detail

/// A future of all results, in the order of the futures; of the first exception, if there is one,
/// when all have ended. Throws usage_error if one of them has no call, or a method or coroutine
/// waits for it; then all are left as they were.
template <class T>
auto when_all(std::vector<future<T>>&& futures) {
  using R = std::conditional_t<std::is_void_v<T>, void, std::vector<std::conditional_t<std::is_void_v<T>, int, T>>>;
  for (const auto& f : futures) detail::future_access<T>::check(f);
  return detail::join_futures<R>(std::move(futures));
}

/// The same for futures of different types: a future of a tuple.
template <class... T>
  requires(sizeof...(T) > 0 && (!std::is_void_v<T> && ...))
future<std::tuple<T...>> when_all(future<T>&&... futures) {
  (detail::future_access<T>::check(futures), ...);
  return detail::join_futures<std::tuple<T...>>(std::tuple<future<T>...>(std::move(futures)...));
}

/// The result of when_any: which one ended first, and all the futures.
template <class T>
struct any_of {
  std::size_t index;
  std::vector<future<T>> futures;
};

/// A future that is ready when the first of the futures is. Throws as when_all.
template <class T>
future<any_of<T>> when_any(std::vector<future<T>>&& futures) {
  using R = any_of<T>;
  if (futures.empty()) throw usage_error(errc::bad_argument, "when_any: there is no future to wait for");
  for (const auto& f : futures) detail::future_access<T>::check(f);
  detail::pe& self = detail::here_pe();
  auto any = detail::future_access<R>::make_local(self);
  struct racing {
    std::vector<future<T>> futures;
    detail::future_state<R>* target;
    static void finish(detail::pe& at, racing* race) {
      const wire::unique_ptr<racing> owned(race);
      std::size_t first = race->futures.size();
      for (std::size_t i = race->futures.size(); i-- > 0;) {
        if (race->futures[i].ready()) first = i;
        detail::future_access<T>::get(race->futures[i])->continuation = nullptr;
      }
      detail::resolve<R>(at, race->target, [&] { return R{first, std::move(race->futures)}; });
    }
  };
  any->hold();
  auto* r = new racing{std::move(futures), any.get()};
  bool done = false;
  for (auto& f : r->futures) {
    auto* s = detail::future_access<T>::get(f);
    done = done || f.ready();
    s->continuation_data = r;
    s->continuation = [](detail::pe& at, detail::future_state_base& base) {
      racing::finish(at, static_cast<racing*>(base.continuation_data));
    };
  }
  if (done) racing::finish(self, r);
  return detail::future_access<R>::wrap(std::move(any));
}

}  // namespace orrery
