// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/call.hpp>
#include <orrery/process/detail/method.hpp>
#include <orrery/process/remote.hpp>
#include <orrery/process/remote_cast.hpp>

#include <type_traits>

// Which methods a program can be asked for by others.
//
// Problem: the handler of a method comes about where it is called. A program that has a process and
// never calls it would not understand who does. So a program has the handlers of all methods of the
// classes that it publishes, and of those that such methods give and take remote pointers to (or
// groups: serve_group.hpp, or arrays: array/detail/serve_elements.hpp).
// Methods that are overloaded are not among them: nobody has said with which arguments.
namespace orrery::detail {

/// The mode of a proxy that has the handlers of its methods, and cannot call.
struct serve_mode {
  using target = address;
};

/// Never called: what names it has the handlers.
template <class T, class Mode = serve_mode>
void serve() {
  if constexpr (described<T>) [[maybe_unused]]
    const proxy_of<description_of<T>, Mode> methods{};
}

// For remote pointers in V: the classes.
template <class V>
struct pointed_by {
  static void serve_all() {}
};
template <class T>
struct pointed_by<remote<T>> {
  static void serve_all() { (void)&serve<T>; }
};
template <template <class...> class V, class... T>
  requires(!is_remote<V<T...>>)
struct pointed_by<V<T...>> {
  static void serve_all() { (pointed_by<T>::serve_all(), ...); }
};

template <class M, class R, class... P>
struct exact_proxy<serve_mode, M, R, P...> {
  exact_proxy() noexcept {
    if constexpr ((can_be_parameter<P> && ...) && can_be_result<R>) {
      (void)&typed_handler<method_operation<M, R>, P...>::instance;
      (void)&pointed_by<value_t<R>>::serve_all;
      ((void)&pointed_by<std::remove_cvref_t<P>>::serve_all, ...);
    }
  }
  void operator()(P...) const;
};
template <class M>
struct forwarding_proxy<serve_mode, M> {};

}  // namespace orrery::detail
