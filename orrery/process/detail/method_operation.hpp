// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/describe.hpp>
#include <orrery/process/detail/here_pe.hpp>

#include <string_view>
#include <type_traits>
#include <utility>

namespace orrery::detail {

/// Calling a method of an object.
template <class M, class R>
struct method_operation {
  using object = typename M::object;
  using result = R;
  static constexpr std::string_view class_name() noexcept { return type_name<object>(); }
  static constexpr std::string_view name() noexcept { return M::name; }
  static constexpr bool exact = [] {
    if constexpr (requires { M::template pointer<object>(0); }) {
      return !std::is_same_v<decltype(M::template pointer<object>(0)), overloaded>;
    } else {
      return false;
    }
  }();
  template <class... A>
  static decltype(auto) run(pe&, slot&, object* o, A&&... arguments) {
    return M::call(*o, std::forward<A>(arguments)...);
  }
};

}  // namespace orrery::detail
