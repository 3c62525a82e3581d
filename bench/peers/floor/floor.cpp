// SPDX-License-Identifier: Apache-2.0
// What the hardware and the kernel cost, with nothing in between: the floors under every figure.
#include "../common.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <string_view>
#include <thread>

using namespace peers;

// Two pinned threads bounce one cache line: each waits for the other's value and adds one.
static void cacheline(cpu_pair cpu) {
  struct alignas(128) line {
    std::atomic<std::uint64_t> value{0};
  };
  line shared_line;
  auto& v = shared_line.value;
  constexpr std::uint64_t batch = 20'000, stop = ~std::uint64_t{0};
  std::thread other([&] {
    pin(cpu.last);
    for (std::uint64_t expected = 1;; expected += 2) {
      std::uint64_t seen;
      while ((seen = v.load(std::memory_order_acquire)) != expected)
        if (seen == stop) return;
      v.store(expected + 1, std::memory_order_release);
    }
  });
  pin(cpu.first);
  std::uint64_t count = 0;
  std::vector<double> samples;
  for (auto end = now_ns() + std::uint64_t(seconds() * 5e8); now_ns() < end;) {
    auto t = now_ns();
    for (std::uint64_t i = 0; i < batch; ++i, count += 2) {
      v.store(count + 1, std::memory_order_release);
      while (v.load(std::memory_order_acquire) != count + 2) {
      }
    }
    samples.push_back(double(now_ns() - t) / double(batch));
  }
  v.store(stop);
  other.join();
  report("floor_cacheline_rtt_ns", median(samples));
}

static long futex(std::atomic<std::uint32_t>& word, int op, std::uint32_t value) {
  return syscall(SYS_futex, &word, op, value, nullptr, nullptr, 0);
}

// Two pinned threads wake each other by futex. A round trip counts only if both wake-ups found a
// sleeper. `idle_us` is how long both stay asleep before each round: 0 is a plain ping-pong.
static void futex_rtt(const char* metric, cpu_pair cpu, unsigned idle_us) {
  struct alignas(128) side {
    std::atomic<std::uint32_t> word{0};
  };
  side ping, pong;
  std::atomic<bool> stop{false}, found_sleeper{false};
  auto wait_for = [](side& s, std::uint32_t round) {
    std::uint32_t seen;
    while ((seen = s.word.load()) != round) futex(s.word, FUTEX_WAIT_PRIVATE, seen);
  };
  auto wake = [](side& s, std::uint32_t round) {
    s.word.store(round);
    return futex(s.word, FUTEX_WAKE_PRIVATE, 1) == 1;
  };
  std::thread other([&] {
    pin(cpu.last);
    for (std::uint32_t round = 1;; ++round) {
      wait_for(ping, round);
      if (stop) return;
      found_sleeper = wake(pong, round);
    }
  });
  pin(cpu.first);
  std::vector<double> samples;
  std::uint32_t round = 0;
  usleep(1000);
  for (auto end = now_ns() + std::uint64_t(seconds() * 5e8); now_ns() < end;) {
    auto t = now_ns();
    bool slept = wake(ping, ++round);
    wait_for(pong, round);
    auto taken = double(now_ns() - t) * 1e-3;
    usleep(idle_us);  // even with 0: the other has time to lie down again
    if (slept && found_sleeper) samples.push_back(taken);
  }
  stop = true;
  wake(ping, ++round);
  other.join();
  if (samples.size() * 10 < round * 9)
    std::fprintf(stderr, "%s: only %zu of %u rounds slept on both sides\n", metric, samples.size(), round);
  report(metric, median(samples));
}

// One thread copies between two buffers larger than the cache. Bytes copied count once.
static void memory_copy() {
  std::vector<char> from(256u << 20, 1), to(256u << 20, 2);
  std::vector<double> samples;
  for (int i = 0; i < 5; ++i) {
    auto t = now_ns();
    std::memcpy(to.data(), from.data(), from.size());
    samples.push_back(double(from.size()) / double(now_ns() - t));
    from[std::size_t(i)] = to[to.size() - 1];
  }
  report("memcpy_gbps", median(samples));
}

// Follows a pointer through 100,000 cache lines in random order: what a hop between as many processes waits for, if each is one line. They fit
// into the shared cache, if that is not full of what others need.
static void random_line() {
  struct alignas(64) line {
    line* next;
  };
  constexpr std::size_t count = 100'000;
  std::vector<line> lines(count);
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), std::mt19937(7));
  for (std::size_t i = 0; i < count; ++i) lines[order[i]].next = &lines[order[(i + 1) % count]];
  const line* at = lines.data();
  std::vector<double> samples;
  for (int round = 0; round < 6; ++round) {
    auto t = now_ns();
    for (std::size_t i = 0; i < count; ++i) at = at->next;
    asm volatile("" : : "r"(at));
    if (round != 0) samples.push_back(double(now_ns() - t) / double(count));
  }
  report("floor_random_line_ns", median(samples));
}

int main() {
  auto cpu = two_cpus();
  if (cpu.first == cpu.last) {
    std::fputs("the floors between two cores need two CPUs\n", stderr);
    return 1;
  }
  cacheline(cpu);
  futex_rtt("floor_futex_rtt_us", cpu, 0);
  futex_rtt("floor_futex_idle_rtt_us", cpu, 1000);
  memory_copy();
  random_line();
}
