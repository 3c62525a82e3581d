// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/describe.hpp>
#include <orrery/process/detail/method.hpp>

#include <new>
#include <type_traits>
#include <utility>

// The results of post(x), start(x) and others where x is more than an address.
namespace orrery::detail {

/// The proxy of a class, for an object of another kind than an address.
template <class Mode, class T>
[[nodiscard]] const auto* view_target(const typename Mode::target& at) noexcept {
  static_assert(
      is_described<T>,
      "orrery: this class has no ORRERY_PROCESS(Class, methods...) line before this use; if its own methods use it, put the line "
      "before the class, behind a forward declaration");
  using proxy = proxy_of<description_of<T>, Mode>;
  static_assert(std::is_empty_v<proxy>);
  return std::launder(reinterpret_cast<const proxy*>(&at));
}
template <class Mode, class T>
class bound_target {
 public:
  explicit bound_target(typename Mode::target t) : target_(std::move(t)) {}
  [[nodiscard]] const auto* operator->() const noexcept { return view_target<Mode, T>(target_); }

 private:
  typename Mode::target target_;
};

/// The parts of what post(p) returns, whatever p is: how it posts, and to which class.
template <class Bound>
struct bound_parts;
template <template <class, class> class Bound, class Mode, class T>
struct bound_parts<Bound<Mode, T>> {
  using mode = Mode;
  using element = T;
};

}  // namespace orrery::detail
