// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/shared/access.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace orrery::detail {

/// The bytes of a T, to be filled and taken.
template <class T>
struct element_value {
  std::array<std::byte, sizeof(T)> raw;
  [[nodiscard]] T get() const noexcept { return std::bit_cast<T>(raw); }
};

/// What changes an element where it lies, so that nobody comes in between: the same for each kind
/// of handle. `Element` has get(), change_bytes(what, scalar, operand, old) and
/// compare_exchange_bytes(expected, desired). All may park, and throw what those do.
template <class Element, class T>
class element_changes {
 public:
  const Element& operator+=(T x) const
    requires(scalar_of<T> != scalar::none)
  {
    return change_to(element_change::add, x);
  }
  const Element& operator-=(T x) const
    requires(scalar_of<T> != scalar::none)
  {
    return change_to(element_change::subtract, x);
  }
  const Element& operator*=(T x) const
    requires(scalar_of<T> != scalar::none)
  {
    return change_to(element_change::multiply, x);
  }
  const Element& operator/=(T x) const
    requires(scalar_of<T> != scalar::none)
  {
    return change_to(element_change::divide, x);
  }
  /// These return what the element was before.
  T fetch_add(T x) const
    requires(scalar_of<T> != scalar::none)
  {
    return change(element_change::add, x);
  }
  T fetch_min(T x) const
    requires(scalar_of<T> != scalar::none)
  {
    return change(element_change::least, x);
  }
  T fetch_max(T x) const
    requires(scalar_of<T> != scalar::none)
  {
    return change(element_change::greatest, x);
  }
  T exchange(const T& x) const { return change(element_change::exchange, x); }
  /// Writes `desired` if the element has the bytes of `expected`, which else gets the value that is
  /// there.
  bool compare_exchange(T& expected, const T& desired) const {
    auto raw_value = std::bit_cast<element_value<T>>(expected);
    if (self().compare_exchange_bytes(raw_value.raw.data(), &desired)) return true;
    expected = raw_value.get();
    return false;
  }
  /// Makes the element op(element, x), for any op, and returns that. The op may be called several
  /// times.
  template <class Op>
  T accumulate(const T& x, Op op) const {
    T old = self().get();
    for (;;) {
      const T next = op(std::as_const(old), x);
      if (compare_exchange(old, next)) return next;
    }
  }

 private:
  [[nodiscard]] const Element& self() const noexcept { return static_cast<const Element&>(*this); }
  T change(element_change what, const T& operand) const {
    element_value<T> old;
    self().change_bytes(what, scalar_of<T>, &operand, old.raw.data());
    return old.get();
  }
  const Element& change_to(element_change what, const T& operand) const {
    change(what, operand);
    return self();
  }
};

}  // namespace orrery::detail
