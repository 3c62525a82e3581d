// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests only: what the model of shared data draws at random.

#include <orrery/shared/shared.hpp>

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>

namespace orrery::testing {

using random = std::mt19937_64;

inline std::uint64_t below(random& r, std::uint64_t n) { return r() % n; }

/// Elements that the machine does not write whole, of 3 to 200 bytes.
template <class Word, std::size_t N>
struct record_of {
  std::array<Word, N> words{};
  friend auto operator<=>(const record_of&, const record_of&) = default;
};
using small_record = record_of<std::uint8_t, 3>;
using record = record_of<std::uint32_t, 6>;
using large_record = record_of<std::uint64_t, 25>;

inline void set(std::uint8_t& to, std::uint64_t x) { to = static_cast<std::uint8_t>(x); }
inline void set(long& to, std::uint64_t x) { to = static_cast<long>(x); }
template <class Word, std::size_t N>
void set(record_of<Word, N>& to, std::uint64_t x) {
  for (std::uint32_t i = 0; i < N; ++i) to.words[i] = static_cast<Word>(x * (i + 1));
}
inline void set(std::string& to, std::uint64_t x) {
  to = std::to_string(x);
  to.append(x % 97, 'x');
}
template <class T>
T value_of(std::uint64_t x) {
  T v{};
  set(v, x);
  return v;
}

/// Any distribution over any PEs, which fits a vector of n elements, or a matrix of n rows.
[[nodiscard]] distribution random_distribution(random& r, std::uint64_t n, bool matrix);

}  // namespace orrery::testing
