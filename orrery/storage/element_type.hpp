// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

namespace orrery::storage {

/// The types of elements of an array on disk. Numbers are part of the wire format; the names are
/// part of the file format.
enum class element_type : std::uint8_t { float32, float64, complex64, complex128 };

/// Bytes of one element: 4, 8, 8, 16.
[[nodiscard]] constexpr std::size_t size_of(element_type t) noexcept {
  return t == element_type::float32 ? 4 : t == element_type::complex128 ? 16 : 8;
}
[[nodiscard]] constexpr bool is_complex(element_type t) noexcept {
  return t == element_type::complex64 || t == element_type::complex128;
}
/// Real or complex, of 32 bits each.
[[nodiscard]] constexpr bool is_single(element_type t) noexcept {
  return t == element_type::float32 || t == element_type::complex64;
}
/// As NumPy writes it: "complex128".
[[nodiscard]] constexpr std::string_view to_string(element_type t) noexcept {
  switch (t) {
    case element_type::float32:
      return "float32";
    case element_type::float64:
      return "float64";
    case element_type::complex64:
      return "complex64";
    case element_type::complex128:
      return "complex128";
  }
  return "?";
}
/// The type of that name; nothing if there is none.
[[nodiscard]] constexpr std::optional<element_type> element_type_named(std::string_view name) noexcept {
  for (const auto t : {element_type::float32, element_type::float64, element_type::complex64, element_type::complex128})
    if (to_string(t) == name) return t;
  return std::nullopt;
}

/// The C++ types that elements can be: float, double and std::complex of them.
template <class T>
concept element = std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, std::complex<float>> ||
                  std::is_same_v<T, std::complex<double>>;

template <element T>
inline constexpr element_type element_type_of = std::is_same_v<T, float>                 ? element_type::float32
                                                : std::is_same_v<T, double>              ? element_type::float64
                                                : std::is_same_v<T, std::complex<float>> ? element_type::complex64
                                                                                         : element_type::complex128;

}  // namespace orrery::storage
