// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/broadcast_message.hpp>
#include <orrery/array/element.hpp>
#include <orrery/process/group.hpp>

namespace orrery {

template <class T, array_index Index>
class element_ptr;

/// Where the result of a reduction goes. A value that can be sent. Made by the functions below.
using result_target = detail::reduction_target;

/// A target and the future that it fills.
template <class V>
struct expected_result {
  result_target target;
  future<V> result;
};

/// The result as a future on this PE: `auto [target, error] = expect_result<double>();
/// post(grid)->step(target); error.get();`. The elements' contributions must be of this type. The
/// future fails with node_lost if a node goes that an array of this PE was on.
template <class V>
[[nodiscard]] expected_result<V> expect_result() {
  detail::pe& self = detail::here_pe();
  auto state = detail::future_access<V>::make(self, address{}, detail::reduction_result);
  result_target t;
  t.what = result_target::kind::call;
  t.call = {self.id(), detail::array_directory::of(self).waits().expect(*state, 0)};
  t.type = detail::type_mark<V>();
  state->hold();  // given up to the answer
  return {std::move(t), detail::future_access<V>::wrap(std::move(state))};
}

namespace detail {
template <class F>
struct method_parts {
  static_assert(
      never<F>,
      "orrery: result_to: the method is given the result: it has to have one parameter, and not to be overloaded");
  using result = void;
  using parameter = int;
};
#define ORRERY_METHOD_PARTS(qualifiers)         \
  template <class C, class R, class P>          \
  struct method_parts<R (C::*)(P) qualifiers> { \
    using result = R;                           \
    using parameter = P;                        \
  };
ORRERY_METHOD_PARTS()
ORRERY_METHOD_PARTS(const)
ORRERY_METHOD_PARTS(noexcept)
ORRERY_METHOD_PARTS(const noexcept)
#undef ORRERY_METHOD_PARTS

// The parameter of a target that is a method: a view takes any container that is written like it.
template <class P>
[[nodiscard]] std::uint32_t type_taken() noexcept {
  using value = std::remove_cvref_t<P>;
  return orrery::is_view<value> ? 0 : type_mark<value>();
}

[[noreturn]] void throw_no_target(const char* what);
}  // namespace detail

/// The result as a message to a process: `result_to<&Main::done>(main)` posts `main->done(result)`.
/// The method has one parameter, of the type of the contributions. Throws usage_error (null; so do
/// the others below).
template <auto F, class T>
[[nodiscard]] result_target result_to(const remote<T>& p) {
  using parts = detail::method_parts<decltype(F)>;
  using handler = detail::typed_handler<detail::method_operation<detail::pointed_method<T, F>, typename parts::result>,
                                        typename parts::parameter>;
  if (!p) detail::throw_no_target("process");
  result_target t;
  t.type = detail::type_taken<typename parts::parameter>();
  t.what = result_target::kind::process;
  t.process = p.address();
  t.handler = handler::instance.index;
  return t;
}
/// The same to one element of an array.
template <auto F, class T, class Index>
[[nodiscard]] result_target result_to(const element_ptr<T, Index>& e) {
  using parts = detail::method_parts<decltype(F)>;
  using method = detail::pointed_method<T, F>;
  using message = detail::element_message<T, Index, detail::element_operation<T, Index, method, typename parts::result>,
                                          typename parts::parameter>;
  if (e.name().array == 0) detail::throw_no_target("element");
  result_target t;
  t.type = detail::type_taken<typename parts::parameter>();
  t.what = result_target::kind::element;
  t.handler = message::routed.index;
  t.array = e.name().array;
  t.head = message::forms::head_to_wire({}, e.name().index, {});
  return t;
}
/// The same to all elements of an array: the result is broadcast.
template <auto F, class T, class Index>
[[nodiscard]] result_target result_to(const array<T, Index>& a) {
  using parts = detail::method_parts<decltype(F)>;
  using message = detail::broadcast_message<T, Index, detail::pointed_method<T, F>, typename parts::result,
                                            typename parts::parameter>;
  if (!a) detail::throw_no_target("array");
  result_target t;
  t.type = detail::type_taken<typename parts::parameter>();
  t.what = result_target::kind::all;
  t.handler = message::instance.index;
  t.array = a.id();
  return t;
}

}  // namespace orrery
