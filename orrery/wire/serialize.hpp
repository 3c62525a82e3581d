// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <type_traits>

#include <orrery/wire/archive.hpp>
#include <orrery/wire/containers.hpp>
#include <orrery/wire/kinds.hpp>
#include <orrery/wire/serializable.hpp>

// Values to bytes and back.
//
//     std::size_t n = orrery::wire_size(name, matrix);       // exact
//     orrery::writer w(buffer.first(n));
//     orrery::write(w, name, matrix);
//     ...
//     orrery::reader r(received);                            // may be damaged or forged
//     auto name = orrery::read<std::string>(r);
//     auto matrix = orrery::read<std::vector<double>>(r);
//     r.finish();
//
// Numbers, enums, the standard's strings, containers, tuples, optionals, variants, smart pointers,
// complex numbers, times, paths, arrays and aggregates of them need no code. Any other class names
// its members once, for all archives:
//
//     template <class A> void serialize(A& a) { a & name_ & size_; }     // or a(name_, size_)
//
// or, from outside, with a free function in its namespace:
//
//     template <class A> void serialize(A& a, matrix& m);

namespace orrery {

/// Whether all values of all T take the same number of bytes, so that wire_size<T...>() exists.
template <class... T>
inline constexpr bool has_fixed_wire_size =
    (std::is_same_v<T, std::remove_cvref_t<T>> && ...) && wire::extent_of_all(wire::type_list<T...>{}).fixed;

/// The bytes that values of these types take one after the other, whatever they are.
template <class... T>
  requires(has_fixed_wire_size<T...>)
consteval std::size_t wire_size() {
  return wire::extent_of_all(wire::type_list<T...>{}).least;
}

/// The least number of bytes that any T takes.
template <class T>
inline constexpr std::size_t min_wire_size = wire::extent_of<T>.least;

/// The bytes that these values take, written one after the other from the start of a buffer: a
/// constant if the types have a fixed size. Throws usage_error for a value that cannot be sent
/// (nested too deep, valueless variant). Does not park. Stops the compiler if a type is not
/// serializable.
template <class... T>
[[nodiscard]] constexpr std::size_t wire_size(const T&... x) {
  if constexpr ((serializable<T> && ...)) {
    if constexpr (has_fixed_wire_size<T...>) {
      return wire_size<T...>();
    } else {
      sizer s;
      (wire::save(s, x), ...);
      return s.size();
    }
  } else {
    (require_serializable<T>(), ...);
    return 0;
  }
}

/// Writes the values one after the other. Throws usage_error (value_changed) if the buffer is
/// smaller than wire_size() said. Does not park.
template <class... T>
void write(writer& w, const T&... x) {
  (wire::save_checked(w, x), ...);
}

/// Reads the next value into x, whose storage is used again where it can be. Throws bad_message; x
/// is then valid but unspecified. Does not park.
template <class T>
void read_into(reader& r, T& x) {
  wire::load_checked(r, x);
}

/// Reads the next value. A view (`is_view<T>`) points into the reader's buffer. Throws bad_message;
/// does not park.
template <class T>
[[nodiscard]] T read(reader& r) {
  if constexpr (serializable<T>) {
    if constexpr (trivially_serializable<T>) {
      T x;
      wire::load(r, x);
      return x;
    } else {
      T x{};
      wire::load(r, x);
      return x;
    }
  } else {
    require_serializable<T>();
    __builtin_unreachable();
  }
}

}  // namespace orrery
