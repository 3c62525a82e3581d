// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include <orrery/wire/serializable.hpp>

// How each kind of value is written and read, other than containers (containers.hpp). A codec has
//   extent_of<T>()   how many bytes a T takes at least, and whether that is what it always takes
//   save(a, x)       the one traversal for sizing and writing
//   load(r, x)       the same for reading, into an existing object

namespace orrery::wire {

struct extent {
  std::size_t least = 0;
  bool fixed = false;

  friend consteval extent operator+(extent a, extent b) { return {a.least + b.least, a.fixed && b.fixed}; }
};

template <kind K>
struct codec;

template <class T>
consteval extent find_extent() {
  if constexpr (is_trivial<T>)
    return {sizeof(T), true};
  else
    return codec<kind_of<T>>::template extent_of<T>();
}

template <class T>
inline constexpr extent extent_of = find_extent<T>();

template <class... T>
consteval extent extent_of_all(type_list<T...>) {
  return (extent{0, true} + ... + extent_of<T>);
}

template <class A, class T>
constexpr void save(A& a, const T& x) {
  if constexpr (is_trivial<T>)
    a.put(&x, sizeof x);
  else
    codec<kind_of<T>>::save(a, x);
}

template <class T>
constexpr void load(reader& r, T& x) {
  if constexpr (is_trivial<T>)
    std::memcpy(static_cast<void*>(&x), r.take(sizeof x), sizeof x);
  else
    codec<kind_of<T>>::load(r, x);
}

template <class A, class T>
constexpr void save_checked(A& a, const T& x) {
  if constexpr (serializable<T>)
    save(a, x);
  else
    explain<T>();
}

template <class T>
constexpr void load_checked(reader& r, T& x) {
  if constexpr (serializable<T>)
    load(r, x);
  else
    explain<T>();
}

template <>
struct codec<kind::scalar> {  // reached by a long double with padding only
  template <class T>
  static consteval extent extent_of() {
    return {scalar_size<T>, true};
  }
  template <class A, class T>
  static constexpr void save(A& a, const T& x) {
    a.put(&x, scalar_size<T>);
  }
  template <class T>
  static void load(reader& r, T& x) {
    x = T();
    std::memcpy(&x, r.take(scalar_size<T>), scalar_size<T>);
  }
};

template <>
struct codec<kind::boolean> {
  template <class T>
  static consteval extent extent_of() {
    return {1, true};
  }
  template <class A, class T>
  static constexpr void save(A& a, const T& x) {
    const auto byte = static_cast<unsigned char>(x);
    a.put(&byte, 1);
  }
  template <class T>
  static void load(reader& r, T& x) {
    const auto byte = std::to_integer<unsigned char>(*r.take(1));
    if (byte > 1) [[unlikely]]
      r.fail("a bool");
    x = static_cast<T>(byte);
  }
};

template <>
struct codec<kind::member_serialize> {
  template <class T>
  static consteval extent extent_of() {
    return {};
  }
  template <class A, class T>
  static constexpr void save(A& a, const T& x) {
    a.enter();
    const_cast<T&>(x).serialize(a);  // one function for both directions cannot be const
    a.leave();
  }
  template <class T>
  static void load(reader& r, T& x) {
    r.enter();
    x.serialize(r);
    r.leave();
  }
};

template <>
struct codec<kind::free_serialize> {
  template <class T>
  static consteval extent extent_of() {
    return {};
  }
  template <class A, class T>
  static constexpr void save(A& a, const T& x) {
    a.enter();
    serialize(a, const_cast<T&>(x));
    a.leave();
  }
  template <class T>
  static void load(reader& r, T& x) {
    r.enter();
    serialize(r, x);
    r.leave();
  }
};

template <>
struct codec<kind::array> {
  template <class T>
  static consteval std::size_t size() {
    if constexpr (std::is_array_v<T>)
      return std::extent_v<T>;
    else
      return std::tuple_size_v<T>;
  }
  template <class T>
  static consteval extent extent_of() {
    if constexpr (size<T>() == 0) {
      return {0, true};
    } else {
      using element = std::remove_cvref_t<decltype(std::declval<T&>()[0])>;
      constexpr extent each = wire::extent_of<element>;
      return {size<T>() * each.least, each.fixed};
    }
  }
  template <class A, class T>
  static constexpr void save(A& a, const T& x) {
    for (const auto& element : x) wire::save(a, element);
  }
  template <class T>
  static void load(reader& r, T& x) {
    for (auto& element : x) wire::load(r, element);
  }
};

template <>
struct codec<kind::aggregate> {
  template <class T>
  static consteval extent extent_of() {
    return extent_of_all(field_types<T>{});
  }
  template <class A, class T>
  static constexpr void save(A& a, const T& x) {
    visit_fields(x, [&a](const auto&... field) { (wire::save(a, field), ...); });
    (void)a;
  }
  template <class T>
  static void load(reader& r, T& x) {
    visit_fields(x, [&r](auto&... field) { (wire::load(r, field), ...); });
    (void)r;
  }
};

template <>
struct codec<kind::tuple> {
  template <class T>
  using indices = std::make_index_sequence<std::tuple_size<T>::value>;

  template <class T>
  static consteval extent extent_of() {
    return extent_of_all(typename parts_of<T>::type{});
  }
  template <class A, class T>
  static constexpr void save(A& a, const T& x) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      using std::get;
      (wire::save(a, get<I>(x)), ...);
    }(indices<T>{});
    (void)a;
  }
  template <class T>
  static void load(reader& r, T& x) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      using std::get;
      (wire::load(r, get<I>(x)), ...);
    }(indices<T>{});
    (void)r;
  }
};

template <>
struct codec<kind::optional> {
  template <class T>
  static consteval extent extent_of() {
    return {1, false};
  }
  template <class A, class T>
  static constexpr void save(A& a, const T& x) {
    wire::save(a, x.has_value());
    if (x.has_value()) wire::save(a, *x);
  }
  template <class T>
  static void load(reader& r, T& x) {
    bool present;
    wire::load(r, present);
    if (present)
      wire::load(r, x.emplace());
    else
      x.reset();
  }
};

template <>
struct codec<kind::variant> {
  template <class... T>
  using index_type = std::conditional_t<(sizeof...(T) < 256), std::uint8_t, std::uint16_t>;

  template <class T>
  static consteval extent extent_of() {
    return {1, false};
  }
  template <class A, class... T>
  static constexpr void save(A& a, const std::variant<T...>& x) {
    if (x.valueless_by_exception()) [[unlikely]]
      fail_valueless();
    wire::save(a, static_cast<index_type<T...>>(x.index()));
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (void)((x.index() == I && (wire::save(a, *std::get_if<I>(&x)), true)) || ...);
    }(std::index_sequence_for<T...>{});
  }
  template <class... T>
  static void load(reader& r, std::variant<T...>& x) {
    index_type<T...> index;
    wire::load(r, index);
    const bool known = [&]<std::size_t... I>(std::index_sequence<I...>) {
      return ((index == I && (wire::load(r, x.template emplace<I>()), true)) || ...);
    }(std::index_sequence_for<T...>{});
    if (!known) [[unlikely]]
      r.fail("the number of a variant's alternative");
  }
};

template <>
struct codec<kind::pointer> {
  template <class T>
  static consteval extent extent_of() {
    return {1, false};
  }
  template <class A, class T>
  static constexpr void save(A& a, const T& x) {
    const bool present = x != nullptr;
    wire::save(a, present);
    if (!present) return;
    a.enter();
    wire::save(a, *x);
    a.leave();
  }
  template <class T>
  static void load(reader& r, T& x) {
    bool present;
    wire::load(r, present);
    if (!present) {
      x.reset();
      return;
    }
    using value = std::remove_const_t<typename T::element_type>;
    auto* v = new value();
    T owner(v);
    r.enter();
    wire::load(r, *v);
    r.leave();
    x = std::move(owner);
  }
};

template <>
struct codec<kind::duration> {
  template <class T>
  static consteval extent extent_of() {
    return wire::extent_of<typename T::rep>;
  }
  template <class A, class T>
  static constexpr void save(A& a, const T& x) {
    wire::save(a, x.count());
  }
  template <class T>
  static void load(reader& r, T& x) {
    typename T::rep count{};
    wire::load(r, count);
    x = T(count);
  }
};

template <>
struct codec<kind::time_point> {
  template <class T>
  static consteval extent extent_of() {
    return wire::extent_of<typename T::duration>;
  }
  template <class A, class T>
  static constexpr void save(A& a, const T& x) {
    wire::save(a, x.time_since_epoch());
  }
  template <class T>
  static void load(reader& r, T& x) {
    typename T::duration since{};
    wire::load(r, since);
    x = T(since);
  }
};

template <>
struct codec<kind::complex> {  // reached by a complex<long double> only
  template <class T>
  static consteval extent extent_of() {
    constexpr extent part = wire::extent_of<typename T::value_type>;
    return part + part;
  }
  template <class A, class T>
  static constexpr void save(A& a, const T& x) {
    wire::save(a, x.real());
    wire::save(a, x.imag());
  }
  template <class T>
  static void load(reader& r, T& x) {
    typename T::value_type real{};
    typename T::value_type imaginary{};
    wire::load(r, real);
    wire::load(r, imaginary);
    x = T(real, imaginary);
  }
};

}  // namespace orrery::wire
