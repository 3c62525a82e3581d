// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include <orrery/wire/codec.hpp>

// How containers and views are written and read. A length that was read decides neither how much is
// allocated nor how long a loop runs until it has been compared with the bytes that are left: every
// element takes one byte at least, if need be a zero that stands for nothing.

namespace orrery::wire {

/// The bytes of an element of a sequence, with the zero that stands for an element without bytes.
template <class... T>
inline constexpr std::size_t least_element =
    extent_of_all(type_list<T...>{}).least == 0 ? 1 : extent_of_all(type_list<T...>{}).least;

/// Calls f(), which saves or loads an element of least size 0, and then the zero if it was nothing.
template <class A, class F>
constexpr void with_filler(A& a, F&& f) {
  const std::size_t before = a.position();
  f();
  if (a.position() != before) return;
  if constexpr (A::is_loading::value)
    (void)a.take(1);
  else
    a.put_zeros(1);
}

template <class A, class... T>
constexpr void save_element(A& a, const T&... x) {
  if constexpr (extent_of_all(type_list<T...>{}).least == 0) {
    with_filler(a, [&] { (wire::save(a, x), ...); });
  } else {
    (wire::save(a, x), ...);
  }
}

template <class... T>
void load_element(reader& r, T&... x) {
  if constexpr (extent_of_all(type_list<T...>{}).least == 0) {
    with_filler(r, [&] { (wire::load(r, x), ...); });
  } else {
    (wire::load(r, x), ...);
  }
}

/// How many of n elements to make room for at once: all, unless the message is so short that most
/// of them would have to be far smaller on the wire than here. Then the container grows as they
/// come.
template <class Element>
std::size_t room_for(const reader& r, std::size_t n) {
  const std::size_t most = 16 * (r.left() / sizeof(Element)) + 16;
  return n < most ? n : most;
}

template <class T>
inline bool is_aligned(const std::byte* p) {
  return reinterpret_cast<std::uintptr_t>(p) % alignof(T) == 0;
}

template <class T>
constexpr void save_run(auto& a, const T* data, std::size_t n) {
  a.put_length(n);
  a.put_aligned(data, n * sizeof(T), alignof(T));
}

template <>
struct codec<kind::run> {
  template <class T>
  static consteval extent extent_of() {
    return {sizeof(std::uint32_t), false};
  }
  template <class A, class T>
  static constexpr void save(A& a, const T& x) {
    save_run(a, x.data(), x.size());
  }
  template <class T>
  static void load(reader& r, T& x) {
    using element = typename T::value_type;
    const std::size_t n = r.take_count(sizeof(element));
    const std::byte* from = r.take_aligned(n * sizeof(element), alignof(element));
    if constexpr (requires(const element* p) { x.assign(p, p); }) {
      if (is_aligned<element>(from)) [[likely]] {  // no zeroing of what is about to be copied over
        const auto* first = reinterpret_cast<const element*>(from);
        x.assign(first, first + n);
        return;
      }
    }
    x.resize(n);
    if (n != 0) std::memcpy(static_cast<void*>(x.data()), from, n * sizeof(element));
  }
};

template <>
struct codec<kind::view> {
  template <class T>
  static consteval extent extent_of() {
    return {sizeof(std::uint32_t), false};
  }
  template <class A, class T>
  static constexpr void save(A& a, const T& x) {
    save_run(a, x.data(), x.size());
  }
  template <class T>
  static void load(reader& r, T& x) {
    using element = typename T::value_type;
    const std::size_t n = r.take_count(sizeof(element));
    const std::byte* from = r.take_aligned(n * sizeof(element), alignof(element));
    if (n != 0 && !is_aligned<element>(from)) [[unlikely]]
      fail_alignment();
    x = T(reinterpret_cast<const element*>(from), n);
  }
};

template <>
struct codec<kind::sequence> {
  template <class T>
  static consteval extent extent_of() {
    return {sizeof(std::uint32_t), false};
  }
  template <class A, class T>
  static constexpr void save(A& a, const T& x) {
    using element = typename T::value_type;
    a.put_length(x.size());
    if constexpr (std::is_same_v<A, sizer> && wire::extent_of<element>.fixed) {
      a.put(nullptr, x.size() * least_element<element>);
    } else {
      a.enter();
      for (const auto& e : x) save_element(a, e);
      a.leave();
    }
  }
  template <class T>
  static void load(reader& r, T& x) {
    using element = typename T::value_type;
    const std::size_t n = r.take_count(least_element<element>);
    x.clear();
    if constexpr (requires { x.reserve(n); }) x.reserve(room_for<element>(r, n));
    r.enter();
    for (std::size_t i = 0; i != n; ++i) {
      x.emplace_back();
      load_element(r, x.back());
    }
    r.leave();
  }
};

template <>
struct codec<kind::set> {
  template <class T>
  static consteval extent extent_of() {
    return {sizeof(std::uint32_t), false};
  }
  template <class A, class T>
  static constexpr void save(A& a, const T& x) {
    a.put_length(x.size());
    a.enter();
    for (const auto& key : x) save_element(a, key);
    a.leave();
  }
  template <class T>
  static void load(reader& r, T& x) {
    using key = typename T::key_type;
    const std::size_t n = r.take_count(least_element<key>);
    x.clear();
    if constexpr (requires { x.reserve(n); }) x.reserve(room_for<key>(r, n));
    r.enter();
    for (std::size_t i = 0; i != n; ++i) {
      key k{};
      load_element(r, k);
      x.emplace_hint(x.end(), std::move(k));
    }
    r.leave();
    // those that are null now are equal
    if (x.size() != n && r.references() == nullptr) [[unlikely]]
      r.fail("a set without equal elements");
  }
};

template <>
struct codec<kind::map> {
  template <class T>
  static consteval extent extent_of() {
    return {sizeof(std::uint32_t), false};
  }
  template <class A, class T>
  static constexpr void save(A& a, const T& x) {
    a.put_length(x.size());
    a.enter();
    for (const auto& [key, value] : x) save_element(a, key, value);
    a.leave();
  }
  template <class T>
  static void load(reader& r, T& x) {
    using key = typename T::key_type;
    using value = typename T::mapped_type;
    const std::size_t n = r.take_count(least_element<key, value>);
    x.clear();
    if constexpr (requires { x.reserve(n); }) x.reserve(room_for<std::pair<key, value>>(r, n));
    r.enter();
    for (std::size_t i = 0; i != n; ++i) {
      key k{};
      value v{};
      load_element(r, k, v);
      x.emplace_hint(x.end(), std::move(k), std::move(v));
    }
    r.leave();
    if (x.size() != n && r.references() == nullptr) [[unlikely]]
      r.fail("a map without equal keys");
  }
};

// Eight to a byte, the first in the lowest bit.
template <class A, class T>
constexpr void save_bits(A& a, const T& x) {
  for (std::size_t i = 0; i < x.size(); i += 8) {
    unsigned char byte = 0;
    for (std::size_t j = i; j < x.size() && j < i + 8; ++j) {
      byte = static_cast<unsigned char>(byte | (x[j] ? 1u << (j - i) : 0u));
    }
    a.put(&byte, 1);
  }
}

template <class T>
void load_bits(reader& r, T& x) {
  for (std::size_t i = 0; i < x.size(); i += 8) {
    const auto byte = std::to_integer<unsigned>(*r.take(1));
    const std::size_t here = x.size() - i < 8 ? x.size() - i : 8;
    if ((byte >> here) != 0) [[unlikely]]
      r.fail("zeros after the last bit");
    for (std::size_t j = 0; j < here; ++j) x[i + j] = ((byte >> j) & 1) != 0;
  }
}

template <>
struct codec<kind::bools> {
  template <class T>
  static consteval extent extent_of() {
    return {sizeof(std::uint32_t), false};
  }
  template <class A, class T>
  static constexpr void save(A& a, const T& x) {
    a.put_length(x.size());
    if constexpr (std::is_same_v<A, sizer>)
      a.put(nullptr, x.size() / 8 + (x.size() % 8 != 0));
    else
      save_bits(a, x);
  }
  template <class T>
  static void load(reader& r, T& x) {
    const std::size_t n = r.take_length();
    r.require(n / 8 + (n % 8 != 0), 1);
    x.resize(n);
    load_bits(r, x);
  }
};

template <>
struct codec<kind::bits> {
  template <class T>
  static consteval extent extent_of() {
    return {(T().size() + 7) / 8, true};
  }
  template <class A, class T>
  static constexpr void save(A& a, const T& x) {
    save_bits(a, x);
  }
  template <class T>
  static void load(reader& r, T& x) {
    load_bits(r, x);
  }
};

template <>
struct codec<kind::path> {
  template <class T>
  static consteval extent extent_of() {
    return {sizeof(std::uint32_t), false};
  }
  template <class A, class T>
  static constexpr void save(A& a, const T& x) {
    wire::save(a, x.native());
  }
  template <class T>
  static void load(reader& r, T& x) {
    typename T::string_type name;
    wire::load(r, name);
    x = T(std::move(name));
  }
};

}  // namespace orrery::wire
