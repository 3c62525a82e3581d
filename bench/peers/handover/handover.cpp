// SPDX-License-Identifier: Apache-2.0
// The hardware's floor of a buffer that is handed to another OS process: 256 MiB that one has written and the other reads, on another processor. The memory is
// shared and mapped by both; the best of several times, as the first one maps the pages.
//
// Beside that, what could be done about it, all with pages that are mapped:
//   handover_first_gbps      the first time: the pages are mapped by faults
//   handover_populated_gbps  the first time: MADV_POPULATE_READ maps them, and its time counts
//   handover_streamed_gbps   the writer's stores go past its caches
//   handover_flushed_gbps    the writer flushes its caches, and its time counts
//   handover_fetched_gbps    the reader asks for each line 2 KiB ahead
//   handover_again_gbps      the reader reads it a second time
#include "../common.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#endif

using namespace peers;

static std::uint64_t sum_of(const std::uint64_t* words, std::size_t bytes) {
  std::uint64_t sums[8] = {};
  for (std::size_t i = 0; i < bytes / 64; ++i)
    for (std::size_t k = 0; k < 8; ++k) sums[k] += words[8 * i + k];
  std::uint64_t all = 0;
  for (const std::uint64_t each : sums) all += each;
  return all;
}

static std::uint64_t sum_fetched_ahead(const std::uint64_t* words, std::size_t bytes) {
  std::uint64_t sums[8] = {};
  for (std::size_t i = 0; i < bytes / 64; ++i) {
    __builtin_prefetch(words + 8 * i + 256, 0, 0);
    for (std::size_t k = 0; k < 8; ++k) sums[k] += words[8 * i + k];
  }
  std::uint64_t all = 0;
  for (const std::uint64_t each : sums) all += each;
  return all;
}

namespace {

enum class way { plain, populated, streamed, flushed, fetched, again };

void write(std::uint64_t* words, std::size_t bytes, std::uint64_t value, way how) {
#if defined(__x86_64__)
  if (how == way::streamed) {
    for (std::size_t i = 0; i < bytes / 8; ++i)
      _mm_stream_si64(reinterpret_cast<long long*>(words + i), static_cast<long long>(value));
    _mm_sfence();
    return;
  }
#endif
  std::fill_n(words, bytes / 8, value);
}
void flush(const std::uint64_t* words, std::size_t bytes) {
#if defined(__x86_64__)
  for (std::size_t i = 0; i < bytes / 8; i += 8) _mm_clflush(words + i);
  _mm_mfence();
#else
  (void)words, (void)bytes;
#endif
}

struct rates {
  double first = 0;
  double best = 0;
  bool wrong = false;
};

// GB/s from the moment at which all is written.
rates hand_over(std::size_t bytes, const cpu_pair& cpu, way how) {
  void* const p = mmap(nullptr, bytes + 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) fail("mmap");
  auto* const words = static_cast<std::uint64_t*>(p);
  struct state {
    std::atomic<int> turn{0};
    std::uint64_t written_ns = 0;
    rates found;
  };
  auto& s = shared<state>();
  constexpr int times = 6;
  const pid_t reader = fork_child([&] {
    pin(cpu.last);
    for (int i = 0; i < times; ++i) {
      while (s.turn.load() != 2 * i + 1) sched_yield();
      if (how == way::again) {
        s.found.wrong |= sum_of(words, bytes) == 0;
        s.written_ns = now_ns();
      }
      if (how == way::populated && i == 0) madvise(p, bytes, MADV_POPULATE_READ);
      const std::uint64_t sum = how == way::fetched ? sum_fetched_ahead(words, bytes) : sum_of(words, bytes);
      s.found.wrong |= sum != bytes / 8 * std::uint64_t(i + 1);
      const double rate = double(bytes) / double(std::uint64_t(now_ns()) - s.written_ns);
      if (i == 0) s.found.first = rate;
      s.found.best = std::max(s.found.best, rate);
      s.turn.store(2 * i + 2);
    }
  });
  pin(cpu.first);
  for (int i = 0; i < times; ++i) {
    write(words, bytes, std::uint64_t(i + 1), how);
    s.written_ns = now_ns();
    if (how == way::flushed) flush(words, bytes);
    s.turn.store(2 * i + 1);
    while (s.turn.load() != 2 * i + 2) sched_yield();
  }
  waitpid(reader, nullptr, 0);
  munmap(p, bytes + 4096);
  if (s.found.wrong) fail("the sum is wrong");
  return s.found;
}

}  // namespace

int main() {
  const std::size_t bytes = seconds() < 1 ? 1 << 20 : 256 << 20;
  const cpu_pair cpu = two_cpus();
  const rates plain = hand_over(bytes, cpu, way::plain);
  report("handover_gbps", plain.best);
  report("handover_first_gbps", plain.first);
  report("handover_populated_gbps", hand_over(bytes, cpu, way::populated).first);
  report("handover_streamed_gbps", hand_over(bytes, cpu, way::streamed).best);
  report("handover_flushed_gbps", hand_over(bytes, cpu, way::flushed).best);
  report("handover_fetched_gbps", hand_over(bytes, cpu, way::fetched).best);
  report("handover_again_gbps", hand_over(bytes, cpu, way::again).best);
}
