// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/shared/scope.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <tuple>
#include <type_traits>
#include <utility>

namespace orrery {

namespace detail {

/// Sends what a scope has gathered, and ends those that have nothing to send.
template <class H>
void send_or_close(H& handle) {
  if constexpr (requires { handle.flush(); }) {
    handle.flush();
  } else {
    handle.close();
  }
}
template <class H>
void close_after_sending(H& handle) {
  if constexpr (requires { handle.flush(); }) handle.close();
}

}  // namespace detail

/// The end of scopes that were opened by start_with.
///
/// Dropping it ends them, too: it waits, and what goes wrong is reported.
template <class... H>
class [[nodiscard]] scope_end {
 public:
  /// The scopes that are kept open.
  using scopes = detail::opened_scopes<std::index_sequence_for<H...>, H...>;
  explicit scope_end(wire::unique_ptr<scopes> s) noexcept : scopes_(std::move(s)) {}
  /// Returns when everybody can see what was written. Parks. Throws what close() of the handles
  /// throws. A second call does nothing.
  void wait() {
    if (const wire::unique_ptr<scopes> s = std::move(scopes_))
      s->for_each([](auto& handle) { detail::close_after_sending(handle); });
  }

 private:
  wire::unique_ptr<scopes> scopes_;
};

namespace detail {

template <class X, std::size_t... I>
auto start_run_with(X x, std::index_sequence<I...>) {
  using end = scope_end<typename std::remove_cvref_t<std::tuple_element_t<I, X>>::handle...>;
  auto all = wire::make_unique<typename end::scopes>(x);
  auto& f = std::get<sizeof...(I)>(x);
  static_assert(std::is_void_v<decltype(all->run(f))>,
                "orrery: what start_with calls returns nothing, as its scopes go on; write the result to a variable");
  all->run(f);
  all->for_each([](auto& handle) { send_or_close(handle); });
  return end(std::move(all));
}

}  // namespace detail

/// As `with(behaviours..., f)`, but it returns before everybody can see what `f` has written. Local
/// memory that was written from may be used again at once, as the scopes have their own copies;
/// wait() of the result returns when the writes can be seen. In between the process does something
/// else.
///
///     auto seen = start_with(release(c), [&](auto& c) { c[i] = x; });
///     work();
///     seen.wait();
///     team.barrier();  // now the others may read c
///
/// Parks and throws as `with`.
template <class... X>
[[nodiscard]] auto start_with(X&&... behaviours_and_function) {
  static_assert(sizeof...(X) >= 2, "orrery: start_with needs a behaviour and a function");
  return detail::start_run_with(std::tuple<X&&...>(std::forward<X>(behaviours_and_function)...),
                                std::make_index_sequence<sizeof...(X) - 1>());
}

}  // namespace orrery
