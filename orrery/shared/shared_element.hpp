// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/shared/detail/access.hpp>
#include <orrery/shared/detail/element_changes.hpp>
#include <orrery/shared/detail/shared_id.hpp>
#include <orrery/wire/serializable.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string>
#include <type_traits>
#include <utility>

namespace orrery {

namespace detail {

/// Elements that are no plain bytes: their owner holds them as objects, and others get copies.
template <class T>
concept held_by_owner =
    !std::is_trivially_copyable_v<T> && std::copyable<T> && std::default_initializable<T> && serializable<T>;

/// The types that can be elements of shared data.
template <class T>
constexpr void require_shareable() {
  static_assert(!std::is_const_v<T> && !std::is_volatile_v<T> && !std::is_reference_v<T>,
                "orrery: the elements of shared data are values that can be assigned: let their type be neither const "
                "nor a reference");
  if constexpr (std::is_trivially_copyable_v<T>) {
    static_assert(alignof(T) <= 64, "orrery: the elements of shared data are aligned to 64 bytes at most");
  } else if constexpr (!std::copyable<T>) {
    static_assert(
        std::copyable<T>,
        "orrery: the elements of shared data have to be copyable, as whoever reads one gets a copy of it; make "
        "it a process, which others call");
  } else {
    static_assert(std::default_initializable<T>,
                  "orrery: the elements of shared data that are not trivially copyable need a default constructor, "
                  "which makes what they are at first");
    static_assert(serializable<T>,
                  "orrery: the elements of shared data have to be trivially copyable or serializable, as other PEs "
                  "read and write them; give the class a serialize(), and let it hold no raw pointers");
  }
}
/// For what moves elements as their bytes.
template <class T>
constexpr void require_bytes() {
  static_assert(std::is_trivially_copyable_v<T>,
                "orrery: read_mostly, halo_cache, start_copy, gather and scatter need elements that are trivially "
                "copyable; use read_cache, release, owner_computes or copy for others");
}

/// "mm2.cpp:12"
[[nodiscard]] std::string line_of(const std::source_location& where);
/// "shared vector made at mm2.cpp:12"
[[nodiscard]] std::string made_at(const char* what, const std::source_location& where);

/// An index in `a[i]`, and where in the source that is, for --orrery-check-sharing.
struct element_index {
  std::uint64_t at;
  std::source_location where;
  template <std::convertible_to<std::uint64_t> Index>
  constexpr element_index(const Index& i,  // NOLINT(google-explicit-constructor): as `a[i]` is written
                          const std::source_location& here = std::source_location::current()) noexcept
      : at(static_cast<std::uint64_t>(i)), where(here) {}
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
class shared_element : public detail::element_changes<shared_element<T>, T> {
 public:
  shared_element(const detail::shared_id& id, std::uint64_t row, std::uint64_t column,
                 const std::source_location& where) noexcept
      : id_(id), row_(row), column_(column), where_(where) {}
  shared_element(const shared_element&) = default;

  /// The value. May park.
  [[nodiscard]] T get() const {
    detail::element_value<T> v;
    detail::read_element(id_, row_, column_, v.raw.data(), where_);
    return v.get();
  }
  operator T() const { return get(); }  // NOLINT(google-explicit-constructor)
  const shared_element& operator=(const T& value) const {
    detail::write_element(id_, row_, column_, &value, where_);
    return *this;
  }
  const shared_element& operator=(const shared_element& other) const { return *this = other.get(); }
  shared_element& operator=(const shared_element& other) {
    std::as_const(*this) = other.get();
    return *this;
  }
  /// Exchanges the values, one after the other.
  friend void swap(const shared_element& a, const shared_element& b) {
    const T x = a;
    a = b.get();
    b = x;
  }
  friend void swap(shared_element& a, shared_element& b) { swap(std::as_const(a), std::as_const(b)); }

 private:
  friend detail::element_changes<shared_element, T>;
  void change_bytes(detail::element_change what, detail::scalar type, const void* operand, void* old) const {
    detail::change_element(id_, row_, column_, what, type, operand, old, where_);
  }
  bool compare_exchange_bytes(void* expected, const void* desired) const {
    return detail::compare_exchange_element(id_, row_, column_, expected, desired, where_);
  }

  detail::shared_id id_;
  std::uint64_t row_;
  std::uint64_t column_;
  std::source_location where_;
};

}  // namespace orrery
