// SPDX-License-Identifier: Apache-2.0
#include <orrery/wire/copy_bytes.hpp>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace orrery::wire::detail {

#if defined(__x86_64__)
// A load waits for an earlier store a little behind it, as the processor compares the last twelve
// bits of addresses only. From the end to the beginning there are none.
void copy_descending(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  constexpr std::size_t block = 64;
  const auto part = [](auto* p, std::size_t i) { return reinterpret_cast<const __m128i*>(p) + i; };
  std::size_t end = bytes;
  for (; end >= block; end -= block) {
    const std::byte* const f = from + end - block;
    const __m128i a = _mm_loadu_si128(part(f, 0));
    const __m128i b = _mm_loadu_si128(part(f, 1));
    const __m128i c = _mm_loadu_si128(part(f, 2));
    const __m128i d = _mm_loadu_si128(part(f, 3));
    auto* const t = reinterpret_cast<__m128i*>(to + end - block);
    _mm_storeu_si128(t + 3, d);
    _mm_storeu_si128(t + 2, c);
    _mm_storeu_si128(t + 1, b);
    _mm_storeu_si128(t, a);
  }
  std::memcpy(to, from, end);
}
#else
void copy_descending(std::byte* to, const std::byte* from, std::size_t bytes) noexcept { std::memcpy(to, from, bytes); }
#endif

}  // namespace orrery::wire::detail
