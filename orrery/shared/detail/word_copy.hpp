// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/sanitizers.hpp>
#include <orrery/wire/copy_bytes.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(ORRERY_TSAN)
#include <atomic>
#endif

namespace orrery::detail {

// Copies of elements that other PEs may read or write at the same time: a cache of a whole vector
// is filled while others write their own elements of it. Such elements are as they were, or as they
// became; only what is larger than a word may be torn.
//
// memcpy moves aligned words whole on the machines that Orrery runs on, and an atomic loop would
// cost its vector instructions. The language does not promise that. So where ThreadSanitizer
// watches, the words are moved one by one, as atomics.
#if defined(ORRERY_TSAN)
template <class Move>
void for_each_word(const std::byte* shared, std::size_t n, Move move) {
  for (std::size_t i = 0; i < n;) {
    const auto place = reinterpret_cast<std::uintptr_t>(shared + i);
    const auto fits = [&](std::size_t size) { return n - i >= size && place % size == 0; };
    if (fits(8)) {
      i += move(i, std::uint64_t{});
    } else if (fits(4)) {
      i += move(i, std::uint32_t{});
    } else if (fits(2)) {
      i += move(i, std::uint16_t{});
    } else {
      i += move(i, std::uint8_t{});
    }
  }
}
inline void copy_out(void* to, const std::byte* shared, std::size_t n) {
  for_each_word(shared, n, [&](std::size_t i, auto w) {
    auto* word = reinterpret_cast<decltype(w)*>(const_cast<std::byte*>(shared + i));
    w = std::atomic_ref(*word).load(std::memory_order_relaxed);
    std::memcpy(static_cast<std::byte*>(to) + i, &w, sizeof w);
    return sizeof w;
  });
}
inline void copy_in(std::byte* shared, const void* from, std::size_t n) {
  for_each_word(shared, n, [&](std::size_t i, auto w) {
    std::memcpy(&w, static_cast<const std::byte*>(from) + i, sizeof w);
    std::atomic_ref(*reinterpret_cast<decltype(w)*>(shared + i)).store(w, std::memory_order_relaxed);
    return sizeof w;
  });
}
#else
inline void copy_out(void* to, const std::byte* shared, std::size_t n) { wire::copy_bytes(to, shared, n); }
inline void copy_in(std::byte* shared, const void* from, std::size_t n) { wire::copy_bytes(shared, from, n); }
#endif

}  // namespace orrery::detail
