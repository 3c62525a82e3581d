// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace peers {

/// Reads every word of a message, so that a bulk figure means data that was really used. `bytes` is a multiple of 64. Orrery and its peers read
/// with this one loop, which is as fast as memory: a plain one adds a word in each cycle, 29 GB/s here, and would be what is measured.
inline std::uint64_t sum_words(const void* data, std::size_t bytes) {
  using words = std::uint64_t __attribute__((vector_size(16)));
  const char* at = static_cast<const char*>(data);
  const auto next = [&at] {  // the data is aligned to a word, not to two
    words two;
    std::memcpy(&two, at, sizeof(two));
    at += sizeof(two);
    return two;
  };
  words a{}, b{}, c{}, d{};
  for (std::size_t left = bytes; left != 0; left -= 4 * sizeof(words)) {
    a += next();
    b += next();
    c += next();
    d += next();
  }
  const words all = a + b + c + d;
  return all[0] + all[1];
}

}  // namespace peers
