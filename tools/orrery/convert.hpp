// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/storage/element_type.hpp>

#include <cstddef>
#include <cstdint>

namespace orrery::tool {

/// What files have as numbers.
enum class number : std::uint8_t {
  int8,
  uint8,
  int16,
  uint16,
  int32,
  uint32,
  int64,
  uint64,
  float32,
  float64,
  complex64,
  complex128
};

[[nodiscard]] constexpr bool is_complex(number n) { return n == number::complex64 || n == number::complex128; }
/// The smallest element type that holds each of them; float64 for integers of 64 bits, of which it keeps 53.
[[nodiscard]] storage::element_type element_for(number n);

/// What becomes of numbers x of a file: x * slope + intercept, computed in double; each part of a complex one so.
struct conversion {
  number from = number::float64;
  storage::element_type to = storage::element_type::float64;
  double slope = 1;
  double intercept = 0;
};

/// Converts `n` of them. Complex to real, and the reverse, is not to be asked for.
void convert(const conversion& c, const std::byte* from, std::byte* to, std::size_t n);

}  // namespace orrery::tool
