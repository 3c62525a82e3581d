// SPDX-License-Identifier: Apache-2.0
// The hardware's floor of a buffer that is handed to another OS process: 256 MiB that one has written and the other reads, on another processor. The memory is
// shared and mapped by both; the best of several times, as the first one maps the pages.
#include "../common.hpp"

using namespace peers;

static std::uint64_t sum_of(const std::uint64_t* words, std::size_t bytes) {
  std::uint64_t sums[8] = {};
  for (std::size_t i = 0; i < bytes / 64; ++i)
    for (std::size_t k = 0; k < 8; ++k) sums[k] += words[8 * i + k];
  std::uint64_t all = 0;
  for (const std::uint64_t each : sums) all += each;
  return all;
}

int main() {
  const std::size_t bytes = seconds() < 1 ? 1 << 20 : 256 << 20;
  void* const p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) fail("mmap");
  auto* const words = static_cast<std::uint64_t*>(p);
  struct state {
    std::atomic<int> turn{0};
    double best = 0;
    bool wrong = false;
  };
  auto& s = shared<state>();
  constexpr int times = 6;
  const cpu_pair cpu = two_cpus();
  const pid_t reader = fork_child([&] {
    pin(cpu.last);
    for (int i = 0; i < times; ++i) {
      while (s.turn.load() != 2 * i + 1) sched_yield();
      const auto begin = now_ns();
      s.wrong |= sum_of(words, bytes) != bytes / 8 * std::uint64_t(i + 1);
      s.best = std::max(s.best, double(bytes) / double(now_ns() - begin));
      s.turn.store(2 * i + 2);
    }
  });
  pin(cpu.first);
  for (int i = 0; i < times; ++i) {
    std::fill_n(words, bytes / 8, std::uint64_t(i + 1));
    s.turn.store(2 * i + 1);
    while (s.turn.load() != 2 * i + 2) sched_yield();
  }
  waitpid(reader, nullptr, 0);
  if (s.wrong) return 1;
  report("handover_gbps", s.best);
}
