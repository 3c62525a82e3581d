// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/message.hpp>
#include <orrery/wire/serialize.hpp>

#include <type_traits>

// The types that can be a parameter, a result or a message, and one sentence about each type that
// cannot. Asked where the user's call is, so that the compiler speaks of that line and not of the
// depths behind it.
namespace orrery {
template <class T>
class future;
}

namespace orrery::detail {

template <class... T>
inline constexpr bool never = false;

/// Stands for the result of a call that is refused, so that it is refused once.
struct refused {
  template <class T>
  operator T() const;  // NOLINT(google-explicit-constructor)
};

template <class P>
inline constexpr bool is_out_parameter = std::is_lvalue_reference_v<P> && !std::is_const_v<std::remove_reference_t<P>>;
/// Where a message lies its elements would lie elsewhere than they have to.
template <class V>
inline constexpr bool is_overaligned_view = false;
template <class V>
  requires is_view<V> && requires { typename V::value_type; }
inline constexpr bool is_overaligned_view<V> = alignof(typename V::value_type) > scheduler::payload_alignment;

template <class P>
inline constexpr bool can_be_parameter =
    !is_out_parameter<P> && !is_overaligned_view<std::remove_cvref_t<P>> && serializable<std::remove_cvref_t<P>>;
template <class R>
inline constexpr bool can_be_result = !is_view<std::remove_cvref_t<R>> && serializable<std::remove_cvref_t<R>> &&
                                      std::is_constructible_v<std::remove_cvref_t<R>, R>;
template <>
inline constexpr bool can_be_result<void> = true;
template <class T>  // what travels is the value, when it is there
inline constexpr bool can_be_result<future<T>> = can_be_result<T>;
template <class T>
inline constexpr bool can_be_message = std::is_same_v<T, std::remove_cvref_t<T>> && !is_view<T> && serializable<T>;

template <class P>
consteval void require_parameter() {
  if constexpr (is_out_parameter<P>) {
    static_assert(
        never<P>,
        "orrery: a method of a process, and a function that runs elsewhere, cannot take a pointer or a non-const "
        "reference: the caller may be in another OS process; take it by value or const reference, and return what "
        "changed");
  } else if constexpr (is_overaligned_view<std::remove_cvref_t<P>>) {
    static_assert(
        never<P>,
        "orrery: a view (std::span) whose elements are aligned to more than 16 bytes cannot be read where its "
        "message lies: take a std::vector");
  } else {
    require_serializable<std::remove_cvref_t<P>>();
  }
}

/// For a result that comes later: what it is of.
template <class R>
struct comes_later : std::false_type {};
template <class T>
struct comes_later<future<T>> : std::true_type {
  using of = T;
};

template <class R>
consteval void require_result() {
  if constexpr (can_be_result<R>) {
  } else if constexpr (requires { typename comes_later<std::remove_cvref_t<R>>::of; }) {
    require_result<typename comes_later<std::remove_cvref_t<R>>::of>();
  } else if constexpr (is_view<std::remove_cvref_t<R>>) {
    static_assert(
        never<R>,
        "orrery: the result of a method of a process cannot be a view (std::span, std::string_view), which would outlive "
        "what it looks at: return std::vector or std::string");
  } else if constexpr (!serializable<std::remove_cvref_t<R>>) {
    require_serializable<std::remove_cvref_t<R>>();
  } else {
    static_assert(
        never<R>,
        "orrery: a result that is returned by reference travels as a copy, and this class cannot be copied: return "
        "it by value, or what the caller needs of it");
  }
}

template <class T>
consteval void require_message() {
  if constexpr (can_be_message<T>) {
  } else if constexpr (!std::is_same_v<T, std::remove_cvref_t<T>> || is_view<T>) {
    static_assert(
        never<T>,
        "orrery: send and receive<T> need a T that is a value: no reference, not const, and no view (use std::string or "
        "std::vector)");
  } else {
    require_serializable<T>();
  }
}

}  // namespace orrery::detail
