// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/stack.hpp>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <new>

#include <sys/mman.h>

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

namespace orrery::scheduler {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t guard_bytes = 4 * page;
// Idle stacks that keep their pages: so many of the usual size, fewer of larger ones.
constexpr std::size_t hot_stacks = 256;
constexpr std::size_t hot_bytes = hot_stacks * (64 << 10);
// of address space, at most; one stack may be more
constexpr std::size_t chunk_bytes = std::size_t{4} << 30;

// The table that in_stack_guard may read inside a signal handler: a fixed table, entries written
// once and never moved.
struct guarded_range {
  std::atomic<std::uintptr_t> begin{0};  // 0: free
  std::atomic<std::uintptr_t> end{0};
  std::atomic<std::size_t> stride{0};
};
constexpr std::size_t max_ranges = 4096;
guarded_range ranges[max_ranges];
std::atomic<std::size_t> range_count{0};

std::mutex ranges_mutex;  // of those who write

void remember(std::byte* begin, std::size_t bytes, std::size_t stride) noexcept {
  const std::lock_guard lock(ranges_mutex);
  std::size_t i = 0;
  while (i < max_ranges && ranges[i].begin.load(std::memory_order_relaxed) != 0) ++i;
  if (i == max_ranges) return;  // the overflow is still caught, only not named
  ranges[i].end.store(reinterpret_cast<std::uintptr_t>(begin) + bytes, std::memory_order_relaxed);
  ranges[i].stride.store(stride, std::memory_order_relaxed);
  // SYNC: release, with in_stack_guard
  ranges[i].begin.store(reinterpret_cast<std::uintptr_t>(begin), std::memory_order_release);
  if (i >= range_count.load(std::memory_order_relaxed)) range_count.store(i + 1, std::memory_order_relaxed);
}

void forget(const std::byte* begin) noexcept {
  const std::lock_guard lock(ranges_mutex);
  for (auto& r : ranges)
    if (r.begin.load(std::memory_order_relaxed) == reinterpret_cast<std::uintptr_t>(begin))
      r.begin.store(0, std::memory_order_relaxed);
}

void install_guard(std::byte* at) noexcept {
  if (madvise(at, guard_bytes, MADV_GUARD_INSTALL) == 0) return;
  if (mprotect(at, guard_bytes, PROT_NONE) == 0) return;
  static std::atomic<bool> said{false};
  if (!said.exchange(true))
    std::fputs(
        "orrery: the kernel has no mapping left for the guard of a stack (vm.max_map_count): further stacks "
        "have none; raise the limit or use Linux 6.13 or newer\n",
        stderr);
}

}  // namespace

stack_pool::stack_pool(std::size_t usable_bytes) noexcept
    : usable_((usable_bytes + page - 1) / page * page),
      stride_(usable_ + guard_bytes + page),
      hot_(std::clamp(hot_bytes / usable_, std::size_t{1}, hot_stacks)) {
  // an odd number of pages: neighbours differ in their cache sets
  if (stride_ / page % 2 == 0) stride_ += page;
}

stack_pool::~stack_pool() {
  for (const chunk& c : chunks_) {
    forget(c.begin);
    munmap(c.begin, c.bytes);
  }
}

void stack_pool::grow() {
  std::size_t bytes = 0;
  void* p = MAP_FAILED;
  // Fewer at a time where little address space is left.
  for (std::size_t count =
           std::clamp(chunk_bytes / stride_, std::size_t{1}, std::size_t{chunks_.empty() ? 16U : 1024U});
       count != 0 && p == MAP_FAILED; count /= 4) {
    bytes = count * stride_;
    p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  if (p == MAP_FAILED) throw std::bad_alloc{};
  madvise(p, bytes, MADV_NOHUGEPAGE);  // else the first touch of a stack would cost 2 MiB
#ifdef ORRERY_ASAN
  __asan_unpoison_memory_region(p, bytes);  // from stacks that were here and were never unwound
#endif
  chunks_.push_back({static_cast<std::byte*>(p), bytes});
  remember(chunks_.back().begin, bytes, stride_);
  next_ = chunks_.back().begin;
  end_ = next_ + bytes;
}

stack stack_pool::allocate() {
  if (!free_.empty()) {
    stack s = free_.back();
    free_.pop_back();
    return s;
  }
  if (next_ == end_) grow();
  std::byte* low = next_;
  next_ += stride_;
  install_guard(low);
  // The colour: 0 to 1,984 bytes, so that what a blocked process touches still fits into the top
  // page.
  const std::size_t colour = (carved_++ % 32) * 64;
  return {low + guard_bytes, low + stride_ - colour};
}

bool stack_pool::made(const stack& s) const noexcept {
  const auto top = (reinterpret_cast<std::uintptr_t>(s.top) + page - 1) / page * page;
  return top - reinterpret_cast<std::uintptr_t>(s.bottom) == stride_ - guard_bytes;
}

void stack_pool::release(stack s) noexcept {
  if (free_.size() >= hot_) {
    auto low = reinterpret_cast<std::uintptr_t>(s.bottom);
    auto high = (reinterpret_cast<std::uintptr_t>(s.top) + page - 1) / page * page;
    madvise(s.bottom, high - low, MADV_DONTNEED);
    // Cold stacks go below the hot ones.
    free_.push_back(free_[free_.size() - hot_]);
    free_[free_.size() - 1 - hot_] = s;
    return;
  }
  free_.push_back(s);
}

bool in_stack_guard(const void* address) noexcept {
  const auto a = reinterpret_cast<std::uintptr_t>(address);
  const std::size_t n = range_count.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < n && i < max_ranges; ++i) {
    // SYNC: acquire, with remember
    const std::uintptr_t begin = ranges[i].begin.load(std::memory_order_acquire);
    if (begin != 0 && a >= begin && a < ranges[i].end.load(std::memory_order_relaxed))
      return (a - begin) % ranges[i].stride.load(std::memory_order_relaxed) < guard_bytes;
  }
  return false;
}

}  // namespace orrery::scheduler
