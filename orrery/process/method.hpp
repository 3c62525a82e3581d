// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/describe.hpp>
#include <orrery/wire/address.hpp>

#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

// How `p->m(args...)` becomes a call. A description's proxy is an aggregate of empty callables named like the methods. It has no state: a
// pointer to it is the pointer to the address it stands for, and each callable is found at the same place. The mode says what calling means.
namespace orrery::detail {

struct call_mode;
struct start_mode;
struct post_mode;
struct try_post_mode;

template <class Mode, class T>
[[nodiscard]] inline const auto* view_as(const address& a) noexcept {
  using proxy = proxy_of<description_of<T>, Mode>;
  static_assert(std::is_empty_v<proxy>);
  return std::launder(reinterpret_cast<const proxy*>(&a));
}
template <class Target>
[[nodiscard]] inline const Target& target_of(const void* callable) noexcept {
  const void* p = callable;
  asm("" : "+r"(p));  // the compiler is not to conclude that an empty object has nothing behind it
  return *static_cast<const Target*>(p);
}

// What an argument given to an overloaded method travels as.
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

template <class P>
inline constexpr bool sendable_parameter =
    !std::is_pointer_v<std::remove_cvref_t<P>> &&
    (!std::is_lvalue_reference_v<P> || std::is_const_v<std::remove_reference_t<P>>);

template <class Mode, class M, class R, class... P>
struct exact_proxy {
  auto operator()(P... args) const {
    static_assert(
        (sendable_parameter<P> && ...),
        "orrery: a method of a process cannot take a pointer or a non-const reference: the object may be in another "
        "process; take it by value or const reference, and return what changed");
    return Mode::template invoke<M, R, P...>(target_of<typename Mode::target>(this), std::forward<P>(args)...);
  }
};

template <class Mode, class M>
struct forwarding_proxy {
  template <class... A>
    requires requires(typename M::object& o, typename travels_as<A>::type... a) { M::call(o, std::move(a)...); }
  auto operator()(A&&... args) const {
    using R = decltype(M::call(std::declval<typename M::object&>(), std::declval<typename travels_as<A>::type>()...));
    return Mode::template invoke<M, R, typename travels_as<A>::type...>(
        target_of<typename Mode::target>(this), typename travels_as<A>::type(std::forward<A>(args))...);
  }
};

// Picks the proxy by the type of &T::m.
template <class Mode, class M, class Pointer>
struct proxy_for;
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
