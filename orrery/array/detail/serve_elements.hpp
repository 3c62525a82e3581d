// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/element_ptr.hpp>
#include <orrery/process/detail/serve.hpp>

#include <type_traits>

namespace orrery {
template <class T, array_index Index>
class array;
}

// Which methods of elements a program can be asked for by guests (serve.hpp): those of the arrays
// and elements that methods of the classes it publishes give and take.
namespace orrery::detail {

/// The mode of a proxy that has the handlers of the methods of elements, and cannot call.
template <class T, class Index>
struct serve_elements_mode {
  using target = element_name<T, Index>;
};

template <class T, class Index>
struct pointed_by<array<T, Index>> {
  static void serve_all() { (void)&serve<T, serve_elements_mode<T, Index>>; }
};
template <class T, class Index>
struct pointed_by<element_ptr<T, Index>> {
  static void serve_all() { (void)&serve<T, serve_elements_mode<T, Index>>; }
};

template <class T, class Index, class M, class R, class... P>
struct exact_proxy<serve_elements_mode<T, Index>, M, R, P...> {
  exact_proxy() noexcept {
    if constexpr ((can_be_parameter<P> && ...) && can_be_result<R>) {
      (void)&element_message<T, Index, element_operation<T, Index, M, R>, P...>::form;
      if constexpr ((std::is_copy_constructible_v<kept_t<P>> && ...)) {
        (void)&broadcast_message<T, Index, M, R, P...>::instance;
      }
      (void)&pointed_by<value_t<R>>::serve_all;
      ((void)&pointed_by<std::remove_cvref_t<P>>::serve_all, ...);
    }
  }
  void operator()(P...) const;
};
template <class T, class Index, class M>
struct forwarding_proxy<serve_elements_mode<T, Index>, M> {};

}  // namespace orrery::detail
