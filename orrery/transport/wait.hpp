// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace orrery::transport {

/// The words by which others wake a PE that sleeps. One cache line each, written rarely: senders
/// only read `sleeping`. It lies in the world segment, or in the heap when the world is one node.
struct alignas(64) doorbell {
  std::atomic<std::uint32_t> sleeping{0};  ///< 1: the PE sleeps or is about to
  std::atomic<std::uint32_t> futex{0};     ///< counts wake-ups; the PE sleeps on it
  std::atomic<std::uint32_t> announce{0};  ///< counts new inbound rings
};

// Asymmetric fences. A sender must order "publish the record" before "is the receiver asleep?", and
// a PE that goes to sleep "say that I sleep" before "is there a record?" (Dekker). A full fence for
// every message would wait for the cache line of the record; so the sleeper pays for both with
// membarrier(2), which runs a barrier on every core where a registered OS process runs, and the
// sender's fence is for the compiler only. Where the kernel refuses membarrier both sides use a
// full fence.

/// Called once for each OS process before any PE runs. Returns false where membarrier is not to be
/// had.
bool enable_asymmetric_fences() noexcept;

namespace internal {
extern bool fences_asymmetric;
void full_fence() noexcept;
}  // namespace internal

/// The frequent side.
inline void fence_light() noexcept {
  if (internal::fences_asymmetric) [[likely]] {
    std::atomic_signal_fence(std::memory_order_seq_cst);
  } else {
    internal::full_fence();
  }
}
/// The rare side.
void fence_heavy() noexcept;

/// Sleeps while `word == expected`, at most until `deadline_ns` of CLOCK_MONOTONIC (-1: for ever).
/// `shared`: the word lies in memory shared between OS processes. Wakes spuriously.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, std::int64_t deadline_ns,
                bool shared) noexcept;
void futex_wake(std::atomic<std::uint32_t>& word, bool shared) noexcept;

/// Wakes the PE behind the doorbell if it sleeps. Never issues a system call when it does not.
void ring_doorbell(doorbell& bell, bool shared) noexcept;

/// The step of a sender after it has published a record.
inline void notify(doorbell& bell, bool shared) noexcept {
  fence_light();
  if (bell.sleeping.load(std::memory_order_relaxed) != 0) [[unlikely]]
    ring_doorbell(bell, shared);
}

inline void cpu_relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// CLOCK_MONOTONIC in nanoseconds; in a simulation, the virtual time of the PE that runs.
[[nodiscard]] std::int64_t now_ns() noexcept;
/// CLOCK_MONOTONIC in nanoseconds.
[[nodiscard]] std::int64_t real_now_ns() noexcept;
/// From now on `*now` is the time on this thread; null: the real one again.
void use_clock(const std::int64_t* now) noexcept;

/// A clock of unknown unit for what is measured often: where the CPU has a counter, it does not
/// wait for the loads before it as the clock above does (25 ns).
[[nodiscard]] inline std::uint64_t ticks() noexcept {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  return static_cast<std::uint64_t>(now_ns());
#endif
}

}  // namespace orrery::transport
