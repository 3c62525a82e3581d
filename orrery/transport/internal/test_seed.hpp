// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests only: the seed of what is decided at random, so that a failure can be seen again.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace orrery::testing {

/// The environment variable's value if it is a number, else `otherwise`.
inline std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return otherwise;
  char* end = nullptr;
  const std::uint64_t n = std::strtoull(text, &end, 0);
  return end == text ? otherwise : n;
}

/// ORRERY_TEST_SEED or a new seed, which is printed.
inline std::uint64_t test_seed() {
  const std::uint64_t seed = number_from("ORRERY_TEST_SEED", std::random_device{}());
  std::printf("[   SEED   ] ORRERY_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  return seed;
}

}  // namespace orrery::testing
