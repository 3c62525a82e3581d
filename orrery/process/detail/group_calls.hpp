// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/detail/bound_target.hpp>
#include <orrery/process/detail/broadcast_call.hpp>

#include <cstddef>
#include <new>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

// Calls of a method of all members of a group: the operation that the members run, the modes of a
// call, and reductions.
namespace orrery::detail {

/// Calling a method of each member, with arguments that all of them share.
template <class M, class R, class... P>
struct broadcast_method {
  using object = typename M::object;
  using result = R;
  static constexpr std::string_view class_name() noexcept { return type_name<object>(); }
  static constexpr std::string_view name() noexcept { return M::name; }
  static decltype(auto) run(pe&, slot&, object* o, const std::remove_cvref_t<P>&... arguments) {
    if constexpr (requires { M::call(*o, arguments...); }) {
      return M::call(*o, arguments...);  // what it takes by value is copied
    } else {
      static_assert(
          (std::is_copy_constructible_v<std::remove_cvref_t<P>> && ...),
          "orrery: each member of a group needs an argument of its own where its method takes one by value or `&&`: it "
          "must be copyable");
      return M::call(*o, std::remove_cvref_t<P>(arguments)...);
    }
  }
};

struct group_call_mode {
  using target = group_handle;
  template <class M, class R, class... P>
  static auto invoke(const group_handle& g, P&&... arguments) {
    const group_data& d = g.data();
    auto results = call_parts<broadcast_method<M, R, P...>, gather_fold, P...>(d, arguments...);
    return merge<value_t<R>>(d, results);
  }
};

struct group_start_mode {
  using target = group_handle;
  template <class M, class R, class... P>
  static auto invoke(const group_handle& g, P&&... arguments) {
    return start_parts<broadcast_method<M, R, P...>, gather_fold, P...>(
        g, [](const group_data& d, auto& results) { return merge<value_t<R>>(d, results); }, arguments...);
  }
};

struct group_post_mode {
  using target = group_handle;
  template <class M, class R, class... P>
  static void invoke(const group_handle& g, P&&... arguments) {
    post_parts<broadcast_method<M, R, P...>, gather_fold, P...>(g.data(), arguments...);
  }
};

/// The proxy of a class for all members of a group.
template <class Mode, class T>
[[nodiscard]] const auto* view_all(const group_handle& g) noexcept {
  static_assert(
      is_described<T>,
      "orrery: this class has no ORRERY_PROCESS(Class, methods...) line before this use; if its own methods use "
      "it, put the line before the class, behind a forward declaration");
  using proxy = proxy_of<description_of<T>, Mode>;
  static_assert(std::is_empty_v<proxy> && sizeof(proxy) == 1);
  return std::launder(reinterpret_cast<const proxy*>(&g));
}

/// The result of start(g) and post(g). Used at once, in the same expression.
template <class Mode, class T>
class bound_group {
 public:
  explicit bound_group(const group_handle& g) noexcept : group_(&g) {}
  [[nodiscard]] const auto* operator->() const noexcept { return view_all<Mode, T>(*group_); }

 private:
  const group_handle* group_;
};

// A method that is named by a pointer: &T::m.
template <class T, auto F>
struct pointed_method {
  using object = T;
  static constexpr std::string_view name = [] {
    const std::string_view s = type_name<function_name<F>>();
    const std::size_t begin = s.find('<') + 1;
    const std::string_view whole = s.substr(begin, s.rfind('>') - begin);  // &Class::method
    const std::size_t scope = whole.rfind("::");
    return scope == std::string_view::npos ? whole : whole.substr(scope + 2);
  }();
  template <class... A>
  static auto call(T& o, A&&... arguments) -> decltype((o.*F)(std::forward<A>(arguments)...)) {
    return (o.*F)(std::forward<A>(arguments)...);
  }
};

template <class T, auto F, class Op, class R, class... P>
struct reduction_calls {
  static_assert(!std::is_void_v<R>, "orrery: reduce needs a method that returns something");
  static_assert((can_be_parameter<P> && ...),
                "orrery: a method of a process cannot take a pointer or a non-const reference");
  using V = value_t<R>;
  using operation = broadcast_method<pointed_method<T, F>, R, P...>;
  // Parts combine with what can be made there: an op without state.
  static constexpr bool at_parts = std::is_empty_v<Op> && std::is_default_constructible_v<Op>;
  using fold = std::conditional_t<at_parts, reduce_fold<Op>, gather_fold>;

  static V combine(const group_data& d, std::vector<part_result<V>>& results, const Op& op) {
    if constexpr (at_parts) {
      rethrow_first(results);
      return fold_runs<V>(d, results, op);
    } else {
      std::vector<V> all = merge<V>(d, results);
      V value = std::move(all[0]);
      for (std::size_t i = 1; i < all.size(); ++i) value = op(std::move(value), V(std::move(all[i])));
      return value;
    }
  }
  static V call(const group_handle& g, const Op& op, P... arguments) {
    const group_data& d = g.data();
    require_members(d);
    auto results = call_parts<operation, fold, P...>(d, arguments...);
    return combine(d, results, op);
  }
  static future<V> start(const group_handle& g, const Op& op, P... arguments) {
    require_members(g.data());
    return start_parts<operation, fold, P...>(
        g, [op](const group_data& d, auto& results) { return combine(d, results, op); }, arguments...);
  }
  static void require_members(const group_data& d) {
    if (d.members.empty()) throw usage_error(errc::bad_argument, "reduce: the group has no members");
  }
};

template <class T, auto F, class Op, class Pointer = decltype(F)>
struct reduction;
#define ORRERY_REDUCTION(qualifiers)                                 \
  template <class T, auto F, class Op, class C, class R, class... P> \
  struct reduction<T, F, Op, R (C::*)(P...) qualifiers> : reduction_calls<T, F, Op, R, P...> {};
ORRERY_REDUCTION()
ORRERY_REDUCTION(const)
ORRERY_REDUCTION(noexcept)
ORRERY_REDUCTION(const noexcept)
#undef ORRERY_REDUCTION

}  // namespace orrery::detail
