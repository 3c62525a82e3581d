// SPDX-License-Identifier: Apache-2.0
// What the peers' programs share: a clock, pinning, a forked partner, and the seven-client harness.
#pragma once

#include "sum_words.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <vector>

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

namespace peers {

inline std::uint64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return std::uint64_t(t.tv_sec) * 1'000'000'000u + std::uint64_t(t.tv_nsec);
}

// How long one measurement lasts. The driver sets PEER_SECONDS to a fraction for a smoke run.
inline double seconds() {
  const char* s = std::getenv("PEER_SECONDS");
  return s ? std::atof(s) : 1.0;
}

inline bool pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  return sched_setaffinity(0, sizeof set, &set) == 0;
}

// The first and the last CPU this program may use; equal if there is only one.
struct cpu_pair {
  int first = 0, last = 0;
};
inline cpu_pair two_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  cpu_pair result{-1, 0};
  for (int c = 0; c < CPU_SETSIZE; ++c)
    if (CPU_ISSET(c, &set)) result = {result.first < 0 ? c : result.first, c};
  return result;
}

inline double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v.empty() ? 0.0 : v[v.size() / 2];
}

inline void report(const char* metric, double value) {
  std::printf("%s %.6g\n", metric, value);
  std::fflush(stdout);
}

[[noreturn]] inline void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

// Anonymous memory that forked children share with their parent.
template <class T>
T& shared() {
  void* p = mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) fail("mmap");
  return *new (p) T{};
}

template <class F>
pid_t fork_child(F f) {
  std::fflush(stdout);
  pid_t pid = fork();
  if (pid < 0) fail("fork");
  if (pid == 0) {
    f();
    _exit(0);
  }
  return pid;
}

inline void end_child(pid_t pid) {
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
}

struct block64 {
  std::uint64_t word[8];
};  // the 64-byte request, reply and message
constexpr std::size_t bulk_bytes = 1 << 20;
constexpr int clients = 7;

// Round trips of `call` for `seconds()`: the median of batches, in ns.
template <class Call>
double rtt_ns(Call call, int batch = 200) {
  for (int i = 0; i < batch; ++i) call();
  std::vector<double> samples;
  for (auto end = now_ns() + std::uint64_t(seconds() * 5e8); now_ns() < end;) {
    auto t = now_ns();
    for (int i = 0; i < batch; ++i) call();
    samples.push_back(double(now_ns() - t) / batch);
  }
  return median(samples);
}

// Eight OS processes: `serve()` runs in one until it is killed; in each of the other seven
// `connect(i)` returns a function that makes one call, 64 B out and 64 B back, and waits for the
// reply. Returns thousands of calls per second of all clients together. Nobody is pinned.
template <class Serve, class Connect>
double seven_clients_rate_k(Serve serve, Connect connect) {
  struct state {
    std::atomic<int> ready{0};
    std::atomic<bool> go{false}, stop{false};
    std::atomic<std::uint64_t> calls{0};
  };
  auto& s = shared<state>();
  pid_t server = fork_child(serve);
  pid_t pids[clients];
  for (int i = 0; i < clients; ++i)
    pids[i] = fork_child([&, i] {
      auto call = connect(i);
      for (int n = 0; n < 50; ++n) call();
      s.ready.fetch_add(1);
      while (!s.go.load()) usleep(500);
      std::uint64_t n = 0;
      for (; !s.stop.load(std::memory_order_relaxed); ++n) call();
      s.calls.fetch_add(n);
    });
  for (int waited = 0; s.ready.load() < clients; usleep(1000))
    if (++waited > 10'000) {
      std::fputs("the clients did not connect within 10 s\n", stderr);
      for (pid_t p : pids) end_child(p);
      end_child(server);
      std::exit(1);
    }
  auto start = now_ns();
  s.go.store(true);
  usleep(useconds_t(seconds() * 1e6));
  s.stop.store(true);
  auto end = now_ns();
  for (pid_t p : pids) waitpid(p, nullptr, 0);
  end_child(server);
  return double(s.calls.load()) / (double(end - start) * 1e-9) / 1e3;
}

}  // namespace peers
