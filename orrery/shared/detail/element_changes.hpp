// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/shared/detail/access.hpp>

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <source_location>
#include <type_traits>
#include <utility>

namespace orrery::detail {

/// The bytes of a T, to be filled and taken.
template <class T>
struct element_value {
  std::array<std::byte, sizeof(T)> raw;
  [[nodiscard]] T get() const noexcept { return std::bit_cast<T>(raw); }
};

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
