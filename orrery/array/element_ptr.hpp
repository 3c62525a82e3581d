// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/send_to_element.hpp>
#include <orrery/array/target.hpp>

#include <compare>
#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <type_traits>
#include <utility>

namespace orrery {

namespace detail {
/// The new number of an array after a restart; see references.
[[nodiscard]] std::uint32_t renamed(const references& r, std::uint32_t array) noexcept;

/// An array of Derived is one of Base, too.
template <class Derived, class Base, class Index>
consteval void require_base() {
  static_assert(
      cell<Derived, Index>::offset() == cell<Base, Index>::offset(),
      "orrery: an array of a class is used as one of its base class: both must have the same alignment, or none above "
      "that of a pointer");
}
template <class Derived, class Base>
concept derives_from = !std::same_as<Derived, Base> && std::convertible_to<Derived*, Base*>;

template <class T>
struct index_type_of {
  using type = std::int32_t;
};
template <class T>
  requires requires { typename T::index_type; }
struct index_type_of<T> {
  using type = typename T::index_type;
};
/// The library has all that arrays with indices of these types need.
template <class Index>
inline constexpr bool usual_index =
    std::same_as<Index, std::int32_t> || std::same_as<Index, std::int64_t> || std::same_as<Index, index<2>> ||
    std::same_as<Index, index<3>> || std::same_as<Index, std::string> || std::same_as<Index, bit_path>;
/// Complete where programs have what arrays with other indices need (own_index.hpp).
template <class Index>
struct own_index;
/// A class with an index_type of its own has no other one.
template <class T, class Index>
consteval void require_index_of() {
  static_assert(
      usual_index<Index> || requires { sizeof(own_index<Index>); },
      "orrery: the library has arrays with indices of the types int, std::int64_t, index<2>, index<3>, std::string and "
      "bit_path; for others include <orrery/array/own_index.hpp>, before the array is used");
  static_assert(
      std::same_as<Index, typename index_type_of<T>::type> || !requires { typename T::index_type; },
      "orrery: this class is an element with an index of another type: give the array, and its range, the "
      "index_type of the class");
}
}  // namespace detail

/// One element, by its index: a value that can be stored and sent. It stays good wherever the
/// element goes, and names the next one when the index is used again. Made by `grid[i]`.
///
/// `e->m(args...)` is a sequential call, `start(e)->m(...)`, `post(e)->m(...)` and
/// `try_post(e)->m(...)` as for any remote pointer. A call to an element that does not exist yet
/// waits for it, or creates it, as `when_early` of the class says; to one that was destroyed it
/// throws process_gone with the names of array and index.
template <class T, array_index Index = typename detail::index_type_of<T>::type>
class element_ptr {
 public:
  using element_type = T;
  using modes = detail::element_modes<T, Index>;

  element_ptr() = default;
  explicit element_ptr(detail::element_name<T, Index> n) : name_(std::move(n)) {}
  /// A derived class is as good as its base.
  template <detail::derives_from<T> U>
  element_ptr(const element_ptr<U, Index>& e)  // NOLINT(google-explicit-constructor)
      : name_{e.name().array, e.index()} {
    detail::require_base<U, T, Index>();
  }
  /// The index of the element. Does not park.
  [[nodiscard]] const Index& index() const noexcept { return name_.index; }
  /// The array and the index, as messages carry them.
  [[nodiscard]] const detail::element_name<T, Index>& name() const noexcept { return name_; }
  [[nodiscard]] const auto* operator->() const noexcept { return detail::view_target<typename modes::call, T>(name_); }
  /// False for one that was default-constructed: it names an element of no array.
  [[nodiscard]] explicit operator bool() const noexcept { return name_.array != 0; }
  friend bool operator==(const element_ptr& a, const element_ptr& b) {
    return a.name_.array == b.name_.array && a.name_.index == b.name_.index;
  }
  /// By array and index, if indices have an order.
  friend auto operator<=>(const element_ptr& a, const element_ptr& b)
    requires std::three_way_comparable<Index>
  {
    using order = std::compare_three_way_result_t<Index>;
    if (const auto arrays = a.name_.array <=> b.name_.array; arrays != 0) return order(arrays);
    return a.name_.index <=> b.name_.index;
  }
  template <class A>
  void serialize(A& a) {
    a & name_.array & name_.index;
    detail::rename_after_restart(a, name_.array);
  }

 private:
  detail::element_name<T, Index> name_;
};

namespace detail {
/// The name of an array as far as it is known here.
[[nodiscard]] std::string name_of_array(std::uint32_t id);
}  // namespace detail

/// As errors write it: "grid[3, 4]"; where the array is not known, "array 5[3, 4]". Throws
/// std::bad_alloc, what a to_string() of the index throws.
template <class T, class Index>
[[nodiscard]] std::string to_string(const element_ptr<T, Index>& e) {
  return e ? detail::name_of_array(e.name().array) + "[" + index_text(e.index()) + "]" : "null";
}
template <class Traits, class T, class Index>
std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& out, const element_ptr<T, Index>& e) {
  return out << to_string(e);
}

/// `start(e)->m(...)`, `post(e)->m(...)`, `try_post(e)->m(...)`: the modes of a call, as of a
/// remote pointer.
template <class T, class Index>
[[nodiscard]] auto start(const element_ptr<T, Index>& e) {
  return detail::bound_target<typename detail::element_modes<T, Index>::start, T>(e.name());
}
template <class T, class Index>
[[nodiscard]] auto post(const element_ptr<T, Index>& e) {
  return detail::bound_target<typename detail::element_modes<T, Index>::post, T>(e.name());
}
template <class T, class Index>
[[nodiscard]] auto try_post(const element_ptr<T, Index>& e) {
  return detail::bound_target<typename detail::element_modes<T, Index>::try_post, T>(e.name());
}

/// Destroys the element when it has executed what was sent before by the caller; returns when that
/// is done and the index is free. Where other methods of it are parked its destructor runs when the
/// last of them has ended; those that wait in wait_until throw process_gone. Throws process_gone if
/// it has ended already (for one that was never created this waits, as other early messages do),
/// node_lost, deadlock_error (an element itself: use post_destroy).
template <class T, class Index>
void destroy(const element_ptr<T, Index>& e) {
  detail::call_element<detail::end_message<T, Index>, void>(detail::here_pe(), e.name());
}
/// The same without waiting for it.
template <class T, class Index>
future<void> start_destroy(const element_ptr<T, Index>& e) {
  return detail::start_element<detail::end_message<T, Index>, void>(detail::here_pe(), e.name());
}
/// The same, one way: what goes wrong is reported where the element is, or was. An element ends
/// itself so: it executes what it has in its mailbox, and is then no more.
template <class T, class Index>
void post_destroy(const element_ptr<T, Index>& e) {
  detail::send_element<detail::end_message<T, Index>>(detail::here_pe(), e.name(), nullptr, detail::patience::may_wait);
}
/// Moves the element to another PE, after what was sent before by the caller; the future is ready
/// when it has left. Throws as element::migrate_to reports.
template <class T, class Index>
future<void> start_migrate(const element_ptr<T, Index>& e, std::uint32_t pe) {
  return detail::start_element<detail::leave_message<T, Index>, void>(detail::here_pe(), e.name(), std::uint32_t{pe});
}
/// The same, one way.
template <class T, class Index>
void post_migrate(const element_ptr<T, Index>& e, std::uint32_t pe) {
  detail::send_element<detail::leave_message<T, Index>>(detail::here_pe(), e.name(), nullptr,
                                                        detail::patience::may_wait, std::uint32_t{pe});
}

}  // namespace orrery

template <class T, class Index>
struct std::hash<orrery::element_ptr<T, Index>> {
  [[nodiscard]] std::size_t operator()(const orrery::element_ptr<T, Index>& e) const noexcept {
    return orrery::detail::index_hash<Index>{}(e.index()) ^ orrery::detail::mix(e.name().array);
  }
};
