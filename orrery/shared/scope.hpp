// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <exception>
#include <tuple>
#include <type_traits>
#include <utility>

// Scoped behaviours (Lu 2001, section 2): how shared data is accessed, for each object and each
// scope.
//
//     with(owner_computes(a), read_cache(b), release(c), [&](auto& a, auto& b, auto& c) {
//       for (auto i : a.rows())
//         for (int j = 0; j < n; ++j) c[i, j] = dot_product(&a[i, 0], b, j, n);
//     });
//
// or in a block, whose end is the end of the scope:
//
//     { ORRERY_BEHAVIOUR(a, owner_computes); ... }
//
// A behaviour of one's own is a class B with a member type `handle`, and
//     handle(const B&)   begins to open the scope: sends what has to be sent, and does not wait for
//                        it if it can;
//     ready()            waits until the scope is open;
//     close()            ends it: returns when what was written can be seen by everybody; throws
//                        what went wrong;
//     flush()            if there is one: sends what was written, and does not wait until it can be
//                        seen (start_with);
//     ~handle()          ends it if close() was not called, as an exception has left the scope;
//                        throws nothing.
// A handle is neither copied nor moved. `with` opens all its scopes before it waits for one.

namespace orrery {

namespace detail {

/// Says in one line on stderr that a scope could not be ended while an exception was leaving it.
void report_unended_scope(const std::exception_ptr& why) noexcept;

template <std::size_t, class H>
struct opened {
  H handle;
  template <class B>
  explicit opened(const B& b) : handle(b) {}
};
template <class Indices, class... H>
struct opened_scopes;
template <std::size_t... I, class... H>
struct opened_scopes<std::index_sequence<I...>, H...> : opened<I, H>... {
  template <class X>
  explicit opened_scopes(const X& behaviours) : opened<I, H>(std::get<I>(behaviours))... {}
  template <class F>
  decltype(auto) run(F& f) {
    (opened<I, H>::handle.ready(), ...);
    return f(opened<I, H>::handle...);
  }
  void close() { (opened<I, H>::handle.close(), ...); }
  template <class G>
  void for_each(G g) {
    (g(opened<I, H>::handle), ...);
  }
};

template <class B>
concept behaviour = requires { typename std::remove_cvref_t<B>::handle; };
template <class... X>
consteval bool all_but_last_are_behaviours() {
  std::size_t i = 0;
  return ((++i == sizeof...(X) || behaviour<X>) && ...);
}

template <class X, std::size_t... I>
decltype(auto) run_with(X x, std::index_sequence<I...>) {
  opened_scopes<std::index_sequence<I...>, typename std::remove_cvref_t<std::tuple_element_t<I, X>>::handle...> all(x);
  auto& f = std::get<sizeof...(I)>(x);
  if constexpr (std::is_void_v<decltype(all.run(f))>) {
    all.run(f);
    all.close();
  } else {
    auto result = all.run(f);
    all.close();
    return result;
  }
}

/// A handle whose scope is a block.
template <class H>
class block_scope : public H {
 public:
  template <class B>
  explicit block_scope(const B& b) : H(b), exceptions_(std::uncaught_exceptions()) {
    this->ready();
  }
  block_scope(const block_scope&) = delete;
  block_scope& operator=(const block_scope&) = delete;
  ~block_scope() noexcept(false) {
    // else the base does what can be done
    if (std::uncaught_exceptions() == exceptions_) this->close();
  }

 private:
  int exceptions_;
};
template <class B>
block_scope(const B&) -> block_scope<typename B::handle>;

}  // namespace detail

/// `with(behaviours..., f)`: opens a scope for each behaviour, calls f with their handles by
/// reference, ends the scopes, and returns what f returned. Then all that was written in the scopes
/// can be seen by everybody. If f throws, the scopes end, too, with all that was written before.
///
/// Parks. Throws what f throws; std::out_of_range (a part that is not inside), usage_error
/// (destroyed; somebody views what is to be written), node_lost (a part of the object is),
/// std::bad_alloc, stopped.
template <class... X>
decltype(auto) with(X&&... behaviours_and_function) {
  static_assert(sizeof...(X) >= 2, "orrery: with(behaviours..., f) needs a behaviour and a function");
  static_assert(
      detail::all_but_last_are_behaviours<X...>(),
      "orrery: a scope of `with` is opened by a behaviour, such as read_cache(a): the object itself says not how it is accessed");
  return detail::run_with(std::forward_as_tuple(behaviours_and_function...),
                          std::make_index_sequence<sizeof...(X) - 1>());
}

}  // namespace orrery

// The name of the scope hides that of the object, on purpose.
#if defined(__clang__)
#define ORRERY_DETAIL_MAY_SHADOW _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Wshadow\"")
#define ORRERY_DETAIL_SHADOW_END _Pragma("clang diagnostic pop") static_assert(true)
#else
#define ORRERY_DETAIL_MAY_SHADOW                                                \
  _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wshadow\"") \
      _Pragma("GCC diagnostic ignored \"-Wshadow=local\"")                      \
          _Pragma("GCC diagnostic ignored \"-Wshadow=compatible-local\"")
#define ORRERY_DETAIL_SHADOW_END _Pragma("GCC diagnostic pop") static_assert(true)
#endif

/// From here to the end of the block, which must not be the one that declares it, `name` is
/// accessed as the behaviour says: `{ ORRERY_BEHAVIOUR(a, owner_computes, team); ... }`. Further
/// arguments go to the behaviour. (Aurora's NewBehaviour.) The end of the block throws what the end
/// of the scope throws.
#define ORRERY_BEHAVIOUR(name, behaviour, ...)                                                          \
  ORRERY_DETAIL_MAY_SHADOW                                                                              \
  auto& orrery_outer_##name = name;                                                                     \
  auto name = ::orrery::detail::block_scope(behaviour(orrery_outer_##name __VA_OPT__(, ) __VA_ARGS__)); \
  ORRERY_DETAIL_SHADOW_END
