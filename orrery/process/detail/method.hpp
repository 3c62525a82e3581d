// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/describe.hpp>
#include <orrery/process/detail/check.hpp>
#include <orrery/wire/address.hpp>

#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

// How `p->m(arguments...)` becomes a call. A description's proxy is an aggregate of empty callables
// named like the methods. It has no state: a pointer to it is the pointer to the address it stands
// for, and each callable is found at the same place. The mode says what calling means.
namespace orrery::detail {

struct call_mode;
struct start_mode;
struct post_mode;
struct try_post_mode;

template <class Mode, class T>
[[nodiscard]] inline const auto* view_as(const address& a) noexcept {
  using proxy = proxy_of<description_of<T>, Mode>;
  static_assert(
      std::is_empty_v<proxy> && sizeof(proxy) == 1,
      "orrery: two of the bases in ORRERY_PROCESS_DERIVED derive from the same described class: name only one of them");
  return std::launder(reinterpret_cast<const proxy*>(&a));
}
template <class Target>
[[nodiscard]] inline const Target& target_of(const void* callable) noexcept {
  const void* p = callable;
  asm("" : "+r"(p));  // the compiler is not to conclude that an empty object has nothing behind it
  return *static_cast<const Target*>(p);
}

// The type as which an argument of an overloaded method travels.
template <class A>
struct travels_as {
  using type = std::decay_t<A>;
};
template <class A>
  requires(std::is_same_v<std::decay_t<A>, const char*> || std::is_same_v<std::decay_t<A>, char*>)
struct travels_as<A> {
  using type = std::string;
};

template <class A>
using travels_t = typename travels_as<A>::type;

template <class Mode, class M, class R, class... P>
struct exact_proxy {
  auto operator()(P... arguments) const {
    if constexpr ((can_be_parameter<P> && ...) && can_be_result<R>) {
      return Mode::template invoke<M, R, P...>(target_of<typename Mode::target>(this), std::forward<P>(arguments)...);
    } else {
      (require_parameter<P>(), ...);
      require_result<R>();
      return refused{};
    }
  }
  template <class... A>
    requires(sizeof...(A) < sizeof...(P))
  auto operator()(A&&...) const {
    static_assert(
        never<A...>,
        "orrery: too few arguments: a method's default arguments are not known to a remote pointer: give all, or give the class an "
        "overload that takes fewer");
    return refused{};
  }
};

template <class M, class... A>
concept takes = requires(typename M::object& o, A... a) { M::call(o, std::move(a)...); };

template <class Mode, class M>
struct forwarding_proxy {
  template <class... A>
    requires takes<M, travels_t<A>...>
  auto operator()(A&&... arguments) const {
    using R = decltype(M::call(std::declval<typename M::object&>(), std::declval<travels_t<A>>()...));
    if constexpr ((can_be_parameter<travels_t<A>> && ...) && can_be_result<R>) {
      return Mode::template invoke<M, R, travels_t<A>...>(target_of<typename Mode::target>(this),
                                                          travels_t<A>(std::forward<A>(arguments))...);
    } else {
      (require_parameter<travels_t<A>>(), ...);
      require_result<R>();
      return refused{};
    }
  }
  template <class... A>
  auto operator()(A&&...) const {
    static_assert(is_complete<typename M::object, A...>,
                  "orrery: this class is only declared where its method is called: include its definition before");
    static_assert(
        never<A...> || !is_complete<typename M::object, A...>,
        "orrery: the class has no public method of this name that takes these arguments, or several take them equally well: look at the spelling in "
        "ORRERY_PROCESS, at `public`, and at the arguments, which travel as values (so that a non-const reference or a "
        "pointer cannot take them)");
    return refused{};
  }
};

// Picks the proxy by the type of &T::m.
template <class Mode, class M, class Pointer>
struct proxy_for {
  static_assert(
      never<Pointer>,
      "orrery: ORRERY_PROCESS lists methods; this is a data member, or a method for rvalues, volatile objects or "
      "with C variadic arguments");
};
template <class Mode, class M>
struct proxy_for<Mode, M, overloaded> : forwarding_proxy<Mode, M> {};
#define ORRERY_PROXY_FOR(qualifiers)                                                     \
  template <class Mode, class M, class C, class R, class... P>                           \
  struct proxy_for<Mode, M, R (C::*)(P...) qualifiers> : exact_proxy<Mode, M, R, P...> { \
    using exact_proxy<Mode, M, R, P...>::operator();                                     \
  };
ORRERY_PROXY_FOR()
ORRERY_PROXY_FOR(const)
ORRERY_PROXY_FOR(noexcept)
ORRERY_PROXY_FOR(const noexcept)
ORRERY_PROXY_FOR(&)
ORRERY_PROXY_FOR(const&)
ORRERY_PROXY_FOR(& noexcept)
ORRERY_PROXY_FOR(const& noexcept)
#undef ORRERY_PROXY_FOR
template <class Mode, class M, class R, class... P>
struct proxy_for<Mode, M, R (*)(P...)> : exact_proxy<Mode, M, R, P...> {};  // a static method
template <class Mode, class M, class R, class... P>
struct proxy_for<Mode, M, R (*)(P...) noexcept> : exact_proxy<Mode, M, R, P...> {};

template <class Mode, class Method>
struct method_proxy : proxy_for<Mode, Method, decltype(Method::template pointer<typename Method::object>(0))> {};

}  // namespace orrery::detail
