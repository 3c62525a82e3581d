// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/spawn.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/shared/detail/access.hpp>
#include <orrery/shared/detail/object.hpp>
#include <orrery/shared/detail/word_copy.hpp>

#include <sched.h>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

// Elements that are memory here: each access is one atomic operation, or is made under a lock.
namespace orrery::detail::element_memory {

/// Held while an element is copied that the machine does not copy whole. Holders never park. A node
/// that is killed meanwhile leaves it locked: who waits for long looks whether the holder's node is
/// there, and takes the lock from a dead one. Nodes map the memory at different addresses, so that
/// the place in it chooses the lock.
class element_lock {
 public:
  element_lock(const shared_object& o, const std::byte* at)
      : word_(o.memory->head()
                  .lock[static_cast<std::size_t>(at - o.memory->elements()) / o.element_bytes() % memory_head::locks]) {
    const std::uint32_t self = here_pe().id() + 1;
    for (std::uint32_t tries = 1;; ++tries) {
      std::uint32_t holder = 0;
      // SYNC: acquire, with the destructor.
      if (word_.compare_exchange_weak(holder, self, std::memory_order_acquire)) return;
      if (holder == 0) continue;
      if (tries % 64 == 0) ::sched_yield();
      if (tries % 4096 == 0 && !here_pe().owner().reachable(holder - 1) &&
          word_.compare_exchange_strong(holder, self, std::memory_order_acquire))
        return;
    }
  }
  element_lock(const element_lock&) = delete;
  element_lock& operator=(const element_lock&) = delete;
  ~element_lock() { word_.store(0, std::memory_order_release); }  // SYNC: with the constructor

 private:
  std::atomic<std::uint32_t>& word_;
};

template <class W>
void load_word(const std::byte* at, void* out) noexcept {
  // SYNC: seq_cst, with store_word and the exchanges: an access is complete before the next one of
  // its process begins.
  const W w = std::atomic_ref<W>(*reinterpret_cast<W*>(const_cast<std::byte*>(at))).load();
  std::memcpy(out, &w, sizeof w);
}
template <class W>
void store_word(std::byte* at, const void* value) noexcept {
  W w;
  std::memcpy(&w, value, sizeof w);
  std::atomic_ref<W>(*reinterpret_cast<W*>(at)).store(w);  // SYNC: see load_word
}
template <class W>
bool exchange_word(std::byte* at, void* expected, const void* desired) noexcept {
  W e;
  W d;
  std::memcpy(&e, expected, sizeof e);
  std::memcpy(&d, desired, sizeof d);
  // SYNC: see load_word
  const bool done = std::atomic_ref<W>(*reinterpret_cast<W*>(at)).compare_exchange_strong(e, d);
  std::memcpy(expected, &e, sizeof e);
  return done;
}

// Apart from load and store, so that those need no stack for the usual sizes.
[[gnu::noinline]] inline void load_locked(const shared_object& o, const std::byte* at, void* out) {
  const element_lock lock(o, at);
  copy_out(out, at, o.element_bytes());
}
[[gnu::noinline]] inline void store_locked(const shared_object& o, std::byte* at, const void* value) {
  const element_lock lock(o, at);
  copy_in(at, value, o.element_bytes());
}

// For access by default, the hottest place; elsewhere load and store.
[[gnu::always_inline]] inline void load_inlined(const shared_object& o, const std::byte* at, void* out) {
  switch (o.element_bytes()) {
    case 1:
      return load_word<std::uint8_t>(at, out);
    case 2:
      return load_word<std::uint16_t>(at, out);
    case 4:
      return load_word<std::uint32_t>(at, out);
    case 8:
      return load_word<std::uint64_t>(at, out);
    default:
      load_locked(o, at, out);
  }
}

[[gnu::always_inline]] inline void store_inlined(const shared_object& o, std::byte* at, const void* value) {
  switch (o.element_bytes()) {
    case 1:
      return store_word<std::uint8_t>(at, value);
    case 2:
      return store_word<std::uint16_t>(at, value);
    case 4:
      return store_word<std::uint32_t>(at, value);
    case 8:
      return store_word<std::uint64_t>(at, value);
    default:
      store_locked(o, at, value);
  }
}

inline void load(const shared_object& o, const std::byte* at, void* out) { load_inlined(o, at, out); }
inline void store(const shared_object& o, std::byte* at, const void* value) { store_inlined(o, at, value); }

inline bool exchange(const shared_object& o, std::byte* at, void* expected, const void* desired) {
  switch (o.element_bytes()) {
    case 1:
      return exchange_word<std::uint8_t>(at, expected, desired);
    case 2:
      return exchange_word<std::uint16_t>(at, expected, desired);
    case 4:
      return exchange_word<std::uint32_t>(at, expected, desired);
    case 8:
      return exchange_word<std::uint64_t>(at, expected, desired);
    default: {
      std::vector<std::byte> before(o.element_bytes());
      const element_lock lock(o, at);
      copy_out(before.data(), at, before.size());
      const bool same = std::memcmp(before.data(), expected, before.size()) == 0;
      std::memcpy(expected, before.data(), before.size());
      if (same) copy_in(at, desired, o.element_bytes());
      return same;
    }
  }
}

/// Changes an element as `what` says. Throws std::domain_error: an integer was to be divided by 0;
/// bad_message: the type has another size than the elements.
void change(const shared_object& o, std::byte* at, element_change what, scalar type, const void* operand, void* old);

}  // namespace orrery::detail::element_memory
