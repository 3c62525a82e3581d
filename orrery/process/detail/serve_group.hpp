// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/detail/group_calls.hpp>
#include <orrery/process/detail/serve.hpp>

#include <type_traits>

namespace orrery {
template <class T>
class group;
}

// Which methods of all members of a group a program can be asked for by others (serve.hpp).
namespace orrery::detail {

/// The mode of a proxy that has the handlers of methods of all members, and cannot call.
struct serve_group_mode {
  using target = group_handle;
};

template <class T>
struct pointed_by<group<T>> {
  static void serve_all() {
    (void)&serve<T>;
    (void)&serve<T, serve_group_mode>;
  }
};

template <class M, class R, class... P>
struct exact_proxy<serve_group_mode, M, R, P...> {
  exact_proxy() noexcept {
    if constexpr ((can_be_parameter<P> && ...) && can_be_result<R> &&
                  (std::is_copy_constructible_v<std::remove_cvref_t<P>> && ...)) {
      (void)&broadcast_handler<broadcast_method<M, R, P...>, gather_fold, P...>::instance;
    }
  }
  void operator()(P...) const;
};
template <class M>
struct forwarding_proxy<serve_group_mode, M> {};

}  // namespace orrery::detail
