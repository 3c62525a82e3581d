// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/shared/detail/access.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <limits>
#include <source_location>
#include <type_traits>
#include <utility>

namespace orrery::detail {

/// The bytes of a T, to be filled and taken.
template <class T>
struct element_value {
  std::array<std::byte, sizeof(T)> raw;
  [[nodiscard]] T get() const noexcept { return std::bit_cast<T>(raw); }
  friend bool operator==(const element_value&, const element_value&) = default;
};

/// The bytes of a value. A copy of a long double need not keep the bytes that are padding: they
/// become 0.
template <class T>
[[nodiscard]] element_value<T> value_bytes(const T& x) noexcept {
  auto v = std::bit_cast<element_value<T>>(x);
  if constexpr (std::is_same_v<T, long double> && std::numeric_limits<T>::digits == 64)
    std::fill(v.raw.begin() + 10, v.raw.end(), std::byte{0});
  return v;
}

template <class T>
concept number = scalar_of<T> != scalar::none;
template <class T>
concept whole_number = number<T> && std::is_integral_v<T>;

/// The atomic changes of an element where it lies: the same for each kind of handle. `Element` has
/// get(), change_bytes(what, scalar, operand, old) and compare_exchange_bytes(expected, desired).
/// All may park, and throw what those do.
template <class Element, class T>
class element_changes {
 public:
  const Element& operator+=(T x) const
    requires number<T>
  {
    return change_to(element_change::add, x);
  }
  const Element& operator-=(T x) const
    requires number<T>
  {
    return change_to(element_change::subtract, x);
  }
  const Element& operator*=(T x) const
    requires number<T>
  {
    return change_to(element_change::multiply, x);
  }
  const Element& operator/=(T x) const
    requires number<T>
  {
    return change_to(element_change::divide, x);
  }
  const Element& operator&=(T x) const
    requires whole_number<T>
  {
    return change_to(element_change::bit_and, x);
  }
  const Element& operator|=(T x) const
    requires whole_number<T>
  {
    return change_to(element_change::bit_or, x);
  }
  const Element& operator^=(T x) const
    requires whole_number<T>
  {
    return change_to(element_change::bit_xor, x);
  }
  const Element& operator++() const
    requires number<T>
  {
    return *this += T{1};
  }
  const Element& operator--() const
    requires number<T>
  {
    return *this -= T{1};
  }
  /// These return what the element was before.
  T operator++(int) const
    requires number<T>
  {
    return fetch_add(T{1});
  }
  T operator--(int) const
    requires number<T>
  {
    return fetch_sub(T{1});
  }
  T fetch_add(T x) const
    requires number<T>
  {
    return change(element_change::add, x);
  }
  T fetch_sub(T x) const
    requires number<T>
  {
    return change(element_change::subtract, x);
  }
  T fetch_min(T x) const
    requires number<T>
  {
    return change(element_change::least, x);
  }
  T fetch_max(T x) const
    requires number<T>
  {
    return change(element_change::greatest, x);
  }
  T fetch_and(T x) const
    requires whole_number<T>
  {
    return change(element_change::bit_and, x);
  }
  T fetch_or(T x) const
    requires whole_number<T>
  {
    return change(element_change::bit_or, x);
  }
  T fetch_xor(T x) const
    requires whole_number<T>
  {
    return change(element_change::bit_xor, x);
  }
  T exchange(const T& x) const { return change(element_change::exchange, x); }
  /// Writes `desired` if the element has the bytes of `expected`, which else gets the value that is
  /// there. Padding in a class counts as bytes of it.
  bool compare_exchange(T& expected, const T& desired) const {
    const element_value<T> wanted = value_bytes(expected);
    for (element_value<T> there = wanted; !self().compare_exchange_bytes(there.raw.data(), &desired);) {
      const T value = there.get();
      if (value_bytes(value) == wanted) continue;  // only padding has differed: `there` has it now
      expected = value;
      return false;
    }
    return true;
  }
  /// Makes the element op(element, x), for any op, and returns that. The op may be called several
  /// times.
  template <class Op>
  T accumulate(const T& x, Op op) const {
    // As bytes, and not as a T from one attempt to the next: a copy of a T may lose padding, and
    // the element would never have its bytes.
    element_value<T> there = value_bytes(self().get());
    for (;;) {
      const T old = there.get();
      const T next = op(old, x);
      if (self().compare_exchange_bytes(there.raw.data(), &next)) return next;
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

/// An operand, and where in the source it stands: an operator has no other argument for that.
template <class T>
struct operand_here {
  T value;
  std::source_location where;
  template <std::convertible_to<T> U>
  constexpr operand_here(const U& x,  // NOLINT(google-explicit-constructor): as `s += x` is written
                         const std::source_location& here = std::source_location::current())
      : value(static_cast<T>(x)), where(here) {}
};

/// The same for a handle of one element, which has element(where): `best += 1` is
/// `best.element() += 1`.
template <class Handle, class T>
class scalar_changes {
  using source = std::source_location;

 public:
  template <class U = T>
    requires number<U>
  const Handle& operator+=(const operand_here<T>& x) const {
    return of(at(x.where) += x.value);
  }
  template <class U = T>
    requires number<U>
  const Handle& operator-=(const operand_here<T>& x) const {
    return of(at(x.where) -= x.value);
  }
  template <class U = T>
    requires number<U>
  const Handle& operator*=(const operand_here<T>& x) const {
    return of(at(x.where) *= x.value);
  }
  template <class U = T>
    requires number<U>
  const Handle& operator/=(const operand_here<T>& x) const {
    return of(at(x.where) /= x.value);
  }
  template <class U = T>
    requires whole_number<U>
  const Handle& operator&=(const operand_here<T>& x) const {
    return of(at(x.where) &= x.value);
  }
  template <class U = T>
    requires whole_number<U>
  const Handle& operator|=(const operand_here<T>& x) const {
    return of(at(x.where) |= x.value);
  }
  template <class U = T>
    requires whole_number<U>
  const Handle& operator^=(const operand_here<T>& x) const {
    return of(at(x.where) ^= x.value);
  }
  const Handle& operator++() const { return of(++at(source::current())); }
  const Handle& operator--() const { return of(--at(source::current())); }
  T operator++(int) const { return at(source::current())++; }
  T operator--(int) const { return at(source::current())--; }
  T fetch_add(T x, const source& where = source::current()) const { return at(where).fetch_add(x); }
  T fetch_sub(T x, const source& where = source::current()) const { return at(where).fetch_sub(x); }
  T fetch_min(T x, const source& where = source::current()) const { return at(where).fetch_min(x); }
  T fetch_max(T x, const source& where = source::current()) const { return at(where).fetch_max(x); }
  T fetch_and(T x, const source& where = source::current()) const { return at(where).fetch_and(x); }
  T fetch_or(T x, const source& where = source::current()) const { return at(where).fetch_or(x); }
  T fetch_xor(T x, const source& where = source::current()) const { return at(where).fetch_xor(x); }
  T exchange(const T& x, const source& where = source::current()) const { return at(where).exchange(x); }
  bool compare_exchange(T& expected, const T& desired, const source& where = source::current()) const {
    return at(where).compare_exchange(expected, desired);
  }
  template <class Op>
  T accumulate(const T& x, Op op, const source& where = source::current()) const {
    return at(where).accumulate(x, op);
  }

 private:
  [[nodiscard]] const Handle& self() const noexcept { return static_cast<const Handle&>(*this); }
  [[nodiscard]] auto at(const source& where) const { return self().element(where); }
  template <class Element>
  const Handle& of(const Element&) const noexcept {
    return self();
  }
};

}  // namespace orrery::detail
