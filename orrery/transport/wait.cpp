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
  const long r = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0);
  internal::fences_asymmetric = r == 0;
  return r == 0;
}

void fence_heavy() noexcept {
  if (!internal::fences_asymmetric || syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) != 0)
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
