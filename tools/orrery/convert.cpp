// SPDX-License-Identifier: Apache-2.0
#include "convert.hpp"

#include <cassert>
#include <cstring>

namespace orrery::tool {
namespace {

using storage::element_type;

template <class From, class To>
void each(const conversion& c, const std::byte* from, std::byte* to, std::size_t n) {
  const bool as_it_is = c.slope == 1 && c.intercept == 0;
  for (std::size_t i = 0; i < n; ++i) {
    From x;
    std::memcpy(&x, from + i * sizeof x, sizeof x);
    const To y = as_it_is ? static_cast<To>(x) : static_cast<To>(static_cast<double>(x) * c.slope + c.intercept);
    std::memcpy(to + i * sizeof y, &y, sizeof y);
  }
}

template <class From>
void from_type(const conversion& c, const std::byte* from, std::byte* to, std::size_t n) {
  if (c.to == element_type::float32 || c.to == element_type::complex64) return each<From, float>(c, from, to, n);
  each<From, double>(c, from, to, n);
}

}  // namespace

element_type element_for(number n) {
  switch (n) {
    case number::int8:
    case number::uint8:
    case number::int16:
    case number::uint16:
    case number::float32:
      return element_type::float32;
    case number::complex64:
      return element_type::complex64;
    case number::complex128:
      return element_type::complex128;
    default:
      return element_type::float64;
  }
}

void convert(const conversion& c, const std::byte* from, std::byte* to, std::size_t n) {
  assert(is_complex(c.from) == is_complex(c.to));
  switch (c.from) {
    case number::int8:
      return from_type<std::int8_t>(c, from, to, n);
    case number::uint8:
      return from_type<std::uint8_t>(c, from, to, n);
    case number::int16:
      return from_type<std::int16_t>(c, from, to, n);
    case number::uint16:
      return from_type<std::uint16_t>(c, from, to, n);
    case number::int32:
      return from_type<std::int32_t>(c, from, to, n);
    case number::uint32:
      return from_type<std::uint32_t>(c, from, to, n);
    case number::int64:
      return from_type<std::int64_t>(c, from, to, n);
    case number::uint64:
      return from_type<std::uint64_t>(c, from, to, n);
    case number::float32:
      return from_type<float>(c, from, to, n);
    case number::float64:
      return from_type<double>(c, from, to, n);
    case number::complex64:
      return from_type<float>(c, from, to, 2 * n);
    case number::complex128:
      return from_type<double>(c, from, to, 2 * n);
  }
}

}  // namespace orrery::tool
