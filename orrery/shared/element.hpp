// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/shared/access.hpp>
#include <orrery/shared/shared_id.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string>
#include <type_traits>
#include <utility>

namespace orrery {

namespace detail {

/// What can lie in shared memory.
template <class T>
constexpr void require_shareable() {
  static_assert(std::is_trivially_copyable_v<T> && !std::is_const_v<T> && !std::is_reference_v<T>,
                "orrery: the elements of shared data have to be trivially copyable, as they are read and written as "
                "their bytes; share what others need as numbers, or make it a process");
  static_assert(alignof(T) <= 64, "orrery: the elements of shared data are aligned to 64 bytes at most");
}

/// "shared vector made at mm2.cpp:12"
[[nodiscard]] std::string made_at(const char* what, const std::source_location& where);

/// The bytes of a T, to be filled and taken.
template <class T>
struct element_value {
  std::array<std::byte, sizeof(T)> raw;
  [[nodiscard]] T get() const noexcept { return std::bit_cast<T>(raw); }
};

}  // namespace detail

/// An element of shared data, as `a[i]` gives it: converts to its value, which is read then, and
/// can be assigned to. Each access is complete, for all processes everywhere, before the next one
/// of the same process begins. Elements of 1, 2, 4 and 8 bytes are atomic, larger ones are never
/// seen half written. (`auto x = a[i]` names the element, not its value.)
///
/// All may park, and do where the element lies on another machine. They throw std::out_of_range,
/// usage_error (the object was destroyed), node_lost, stopped.
template <class T>
class shared_element {
 public:
  shared_element(const detail::shared_id& id, std::uint64_t row, std::uint64_t column) noexcept
      : id_(id), row_(row), column_(column) {}
  shared_element(const shared_element&) = default;

  [[nodiscard]] T get() const {
    detail::element_value<T> v;
    detail::read_element(id_, row_, column_, v.raw.data());
    return v.get();
  }
  operator T() const { return get(); }  // NOLINT(google-explicit-constructor)
  const shared_element& operator=(const T& value) const {
    detail::write_element(id_, row_, column_, &value);
    return *this;
  }
  const shared_element& operator=(const shared_element& other) const { return *this = other.get(); }
  shared_element& operator=(const shared_element& other) {
    std::as_const(*this) = other.get();
    return *this;
  }

  // What these change they change where the element lies: nobody comes in between.
  const shared_element& operator+=(T x) const
    requires(detail::scalar_of<T> != detail::scalar::none)
  {
    change(detail::element_change::add, x);
    return *this;
  }
  const shared_element& operator-=(T x) const
    requires(detail::scalar_of<T> != detail::scalar::none)
  {
    change(detail::element_change::subtract, x);
    return *this;
  }
  const shared_element& operator*=(T x) const
    requires(detail::scalar_of<T> != detail::scalar::none)
  {
    change(detail::element_change::multiply, x);
    return *this;
  }
  const shared_element& operator/=(T x) const
    requires(detail::scalar_of<T> != detail::scalar::none)
  {
    change(detail::element_change::divide, x);
    return *this;
  }
  /// These return what the element was before.
  T fetch_add(T x) const
    requires(detail::scalar_of<T> != detail::scalar::none)
  {
    return change(detail::element_change::add, x);
  }
  T fetch_min(T x) const
    requires(detail::scalar_of<T> != detail::scalar::none)
  {
    return change(detail::element_change::least, x);
  }
  T fetch_max(T x) const
    requires(detail::scalar_of<T> != detail::scalar::none)
  {
    return change(detail::element_change::greatest, x);
  }
  T exchange(const T& x) const { return change(detail::element_change::exchange, x); }
  /// Writes `desired` if the element has the bytes of `expected`, which else gets the value that is
  /// there.
  bool compare_exchange(T& expected, const T& desired) const {
    auto bytes = std::bit_cast<detail::element_value<T>>(expected);
    if (detail::compare_exchange_element(id_, row_, column_, bytes.raw.data(), &desired)) return true;
    expected = bytes.get();
    return false;
  }
  /// Makes the element op(element, x), for any op, and returns that. The op may be called several
  /// times.
  template <class Op>
  T accumulate(const T& x, Op op) const {
    T old = get();
    for (;;) {
      const T next = op(std::as_const(old), x);
      if (compare_exchange(old, next)) return next;
    }
  }

 private:
  T change(detail::element_change what, const T& operand) const {
    detail::element_value<T> old;
    detail::change_element(id_, row_, column_, what, detail::scalar_of<T>, &operand, old.raw.data());
    return old.get();
  }

  detail::shared_id id_;
  std::uint64_t row_;
  std::uint64_t column_;
};

}  // namespace orrery
