// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/wait.hpp>

#include <ctime>
#include <limits>

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace orrery::transport {

namespace internal {
bool fences_asymmetric = false;

void full_fence() noexcept {
#if defined(__x86_64__)
  asm volatile("lock; orl $0, (%%rsp)" ::: "memory", "cc");
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}
}  // namespace internal

bool enable_asymmetric_fences() noexcept {
  internal::fences_asymmetric = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0 &&
                                syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
  return internal::fences_asymmetric;
}

// Problem: for the global barrier the kernel keeps a note for each core whether what runs there is
// registered, and renews it where the core changes from one address space to another. A core that
// idled while this process registered, and where this process had run last, changes to none: the
// barrier leaves it out until another program has run there. The private barrier looks at what
// runs, not at the note, so threads of this process are reached in any case. Another process may be
// left out; so a PE that shares memory does not sleep for ever (pe::sleep).
void fence_heavy() noexcept {
  if (!internal::fences_asymmetric || syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) != 0 ||
      syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) != 0)
    internal::full_fence();
}

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, std::int64_t deadline_ns,
                bool shared) noexcept {
  timespec until{};
  if (deadline_ns >= 0) {
    until.tv_sec = deadline_ns / 1'000'000'000;
    until.tv_nsec = deadline_ns % 1'000'000'000;
  }
  syscall(SYS_futex, &word, FUTEX_WAIT_BITSET | (shared ? 0 : FUTEX_PRIVATE_FLAG), expected,
          deadline_ns >= 0 ? &until : nullptr, nullptr, FUTEX_BITSET_MATCH_ANY);
}

void futex_wake(std::atomic<std::uint32_t>& word, bool shared) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAKE | (shared ? 0 : FUTEX_PRIVATE_FLAG), 1, nullptr, nullptr, 0);
}

void ring_doorbell(doorbell& bell, bool shared) noexcept {
  // SYNC: the exchange elects one waker; the sleeper re-checks the futex word inside the kernel.
  if (bell.sleeping.exchange(0, std::memory_order_acq_rel) == 0) return;
  bell.futex.fetch_add(1, std::memory_order_release);
  futex_wake(bell.futex, shared);
}

namespace {
constinit thread_local const std::int64_t* virtual_clock = nullptr;
}

void use_clock(const std::int64_t* now) noexcept { virtual_clock = now; }

std::int64_t now_ns() noexcept { return virtual_clock != nullptr ? *virtual_clock : real_now_ns(); }

std::int64_t real_now_ns() noexcept {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

}  // namespace orrery::transport
