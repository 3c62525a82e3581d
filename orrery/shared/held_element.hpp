// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/detail/or_undo.hpp>
#include <orrery/shared/detail/held.hpp>
#include <orrery/shared/shared_element.hpp>

#include <compare>
#include <concepts>
#include <cstdint>
#include <source_location>
#include <span>
#include <utility>

namespace orrery {

/// An element that its owner holds as an object, such as a string; see shared_element for what the
/// functions do, and for what they throw. An access from another PE is a call to the owner.
template <detail::held_by_owner T>
class shared_element<T> {
 public:
  shared_element(const detail::shared_id& id, std::uint64_t row, std::uint64_t column,
                 const std::source_location& where) noexcept
      : id_(id), row_(row), column_(column), where_(where) {}
  shared_element(const shared_element&) = default;

  /// The value. May park.
  [[nodiscard]] T get() const { return detail::read_held<T>(id_, row_, column_, where_); }
  operator T() const { return get(); }  // NOLINT(google-explicit-constructor)
  const shared_element& operator=(const T& value) const {
    detail::write_held<T>(id_, row_, column_, value, where_);
    return *this;
  }
  const shared_element& operator=(const shared_element& other) const { return *this = other.get(); }
  shared_element& operator=(const shared_element& other) {
    std::as_const(*this) = other.get();
    return *this;
  }
  /// Gives the element a value and returns the one before. May park.
  T exchange(const T& x) const {
    const detail::held_place p = detail::find_held(id_, row_, column_, detail::access_kind::update, where_);
    return call<&detail::exchange_held_here<T>>(pe(p.pe), id_, p.part, p.local, x);
  }
  /// Writes `desired` if the element equals `expected`, or is sent as the same bytes; else
  /// `expected` gets the value that is there.
  bool compare_exchange(T& expected, const T& desired) const
    requires std::equality_comparable<T>
  {
    const detail::held_place p = detail::find_held(id_, row_, column_, detail::access_kind::update, where_);
    auto [done, old] = call<&detail::compare_exchange_held_here<T>>(pe(p.pe), id_, p.part, p.local, expected, desired);
    if (!done) expected = std::move(old);
    return done;
  }
  /// Makes the element op(element, x), for any op, and returns that. The op may be called several
  /// times.
  template <class Op>
    requires std::equality_comparable<T>
  T accumulate(const T& x, Op op) const {
    T old = get();
    for (;;) {
      T next = op(std::as_const(old), x);
      if (compare_exchange(old, next)) return next;
    }
  }
  // Templates such as the comparisons of std::string do not convert what they are given.
  friend bool operator==(const shared_element& a, const shared_element& b)
    requires std::equality_comparable<T>
  {
    return a.get() == b.get();
  }
  friend bool operator==(const shared_element& a, const T& b)
    requires std::equality_comparable<T>
  {
    return a.get() == b;
  }
  friend auto operator<=>(const shared_element& a, const shared_element& b)
    requires std::three_way_comparable<T>
  {
    return a.get() <=> b.get();
  }
  friend auto operator<=>(const shared_element& a, const T& b)
    requires std::three_way_comparable<T>
  {
    return a.get() <=> b;
  }
  /// Exchanges the values, one after the other.
  friend void swap(const shared_element& a, const shared_element& b) {
    const T x = a;
    a = b.get();
    b = x;
  }
  friend void swap(shared_element& a, shared_element& b) { swap(std::as_const(a), std::as_const(b)); }

 private:
  detail::shared_id id_;
  std::uint64_t row_;
  std::uint64_t column_;
  std::source_location where_;
};

namespace detail {

/// A shared object with elements of a type: bytes of the type's size, or one for each element that
/// is held. `value`: what all are; null: T{}.
template <class T>
[[nodiscard]] shared_id make_shared_of(const char* what, std::uint64_t rows, std::uint64_t columns,
                                       const distribution& how, const T* value, const std::source_location& where) {
  require_shareable<T>();
  if constexpr (held_by_owner<T>) {
    serve_held<T>();
    const shared_id id = make_shared(what, rows, columns, 1, without_halo(how), {}, where, sizeof(T));
    if (value != nullptr) or_undo([&] { fill_held(id, *value, where); }, [&] { destroy_shared(id, where); });
    return id;
  } else {
    std::span<const std::byte> first;
    if (value != nullptr) first = std::as_bytes(std::span(value, 1));
    return make_shared(what, rows, columns, sizeof(T), how, first, where);
  }
}

/// Makes all elements `value`, each PE its own. Parks.
template <class T>
void fill_elements(const shared_id& id, const T& value, const std::source_location& where) {
  if constexpr (held_by_owner<T>) {
    fill_held(id, value, where);
  } else {
    fill_shared(id, std::as_bytes(std::span(&value, 1)), where);
  }
}

/// The elements that this PE owns, in the order of their rows. May park.
template <class T>
[[nodiscard]] std::span<T> local_elements(const shared_id& id) {
  if constexpr (held_by_owner<T>) {
    return held_elements<T>(*hold_object(id));
  } else {
    const own_elements own = elements_of_this_pe(id);
    if (own.pitch != own.columns) require_no_halo(*hold_object(id), "local()");
    return {reinterpret_cast<T*>(own.first), own.rows * own.columns};
  }
}

/// The rows that this PE owns. May park.
template <class T>
struct local_rows {
  T* first;
  std::uint64_t pitch;
};
template <class T>
[[nodiscard]] local_rows<T> local_rows_of(const shared_id& id) {
  const own_elements own = elements_of_this_pe(id);
  if constexpr (held_by_owner<T>) {
    return {held_elements<T>(*hold_object(id)).data(), own.columns};
  } else {
    return {reinterpret_cast<T*>(own.first), own.pitch};
  }
}

}  // namespace detail

}  // namespace orrery
