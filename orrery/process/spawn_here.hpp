// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/function.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <concepts>
#include <tuple>
#include <type_traits>
#include <utility>

namespace orrery {
namespace detail {

template <class F, class... A>
struct applied_body final : function_body {
  F f;
  std::tuple<A...> arguments;
  template <class G, class... B>
  explicit applied_body(G&& g, B&&... b) : f(std::forward<G>(g)), arguments(std::forward<B>(b)...) {}
  void run() override { std::apply(f, std::move(arguments)); }
};

/// Starts the body on a PE of this node. Throws usage_error, std::bad_alloc; then the body is the
/// caller's still.
remote<function> begin_here(placement where, wire::unique_ptr<function_body> body);

}  // namespace detail

/// Runs `f(args...)` as a process of its own on a PE of the caller's node and returns a pointer to
/// it at once. f and the arguments stay in this OS process: f may be a lambda with captures, and
/// nothing need be serializable. Objects that it refers to must outlive it, and be safe to use from
/// another thread if the PE is another one. Parks the caller if the PE is another one. Throws
/// usage_error if the place is on another node (in a simulated world each machine is one),
/// std::bad_alloc, stopped.
///
///     const auto me = orrery::this_process<orrery::function>();
///     orrery::spawn_here([&log, me] { log.flush(); send(me, true); });
template <class F, class... A>
  requires std::invocable<std::decay_t<F>&, std::decay_t<A>...>
remote<function> spawn_here(placement where, F&& f, A&&... arguments) {
  using body = detail::applied_body<std::decay_t<F>, std::decay_t<A>...>;
  return detail::begin_here(where, wire::make_unique<body>(std::forward<F>(f), std::forward<A>(arguments)...));
}
/// The same on the caller's own PE.
template <class F, class... A>
  requires(!std::same_as<std::decay_t<F>, placement> && std::invocable<std::decay_t<F>&, std::decay_t<A>...>)
remote<function> spawn_here(F&& f, A&&... arguments) {
  return spawn_here(here(), std::forward<F>(f), std::forward<A>(arguments)...);
}

}  // namespace orrery
