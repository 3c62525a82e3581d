// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace peers {

/// Reads every word of a message, so that a bulk figure means data that was really used. `bytes` is a multiple of 64. Orrery and its peers read
/// with this one loop, which is as fast as memory: a plain one adds a word in each cycle, 29 GB/s here, and would be what is measured.
inline std::uint64_t sum_words(const void* data, std::size_t bytes) {
  using words = std::uint64_t __attribute__((vector_size(16), aligned(8), may_alias));
  const auto* w = static_cast<const words*>(data);
  words a{}, b{}, c{}, d{};
  for (const words* end = w + bytes / sizeof(words); w != end; w += 4) {
    a += w[0];
    b += w[1];
    c += w[2];
    d += w[3];
  }
  const words all = a + b + c + d;
  return all[0] + all[1];
}

}  // namespace peers
