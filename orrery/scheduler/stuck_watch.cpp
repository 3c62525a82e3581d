// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/stuck_watch.hpp>

#include <orrery/scheduler/node.hpp>
#include <orrery/scheduler/pe.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <system_error>

#include <fmt/format.h>
#include <pthread.h>
#include <sys/uio.h>
#include <unistd.h>

namespace orrery::scheduler {

namespace {

constexpr std::int64_t looks_per_limit = 4;
// a thread that uses less than this part of the time only waits
constexpr std::int64_t idle_share = 1000;

// The words of a PE as published (counters.cpp).
constexpr std::size_t asleep_word = 0;
constexpr std::size_t at_word = 1;

std::int64_t cpu_time(clockid_t clock) noexcept {
  timespec t{};
  if (clock_gettime(clock, &t) != 0) return -1;
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

// A PE that waits for its turn on a core does nothing wrong.
std::int64_t pes_per_core(const node& of) noexcept {
  const std::uint32_t pes = of.world() != nullptr ? of.world()->crowd().second : of.pe_count();
  return std::max<std::int64_t>(1, pes / std::max(1U, available_cores()));
}

// Copies what another thread may be writing or unmapping; false if it is not there.
template <class T>
bool copy_of(const T* from, T& to) noexcept {
  const iovec here{static_cast<void*>(&to), sizeof to};
  const iovec there{const_cast<void*>(static_cast<const void*>(from)), sizeof to};
  return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == static_cast<ssize_t>(sizeof to);
}

}  // namespace

stuck_watch::stuck_watch(node& of, std::int64_t limit_ns)
    : node_(of), limit_ns_(limit_ns * pes_per_core(of)), pes_(of.pe_count()) {
  if (limit_ns_ <= 0) return;
  try {
    thread_ = std::thread([this] { loop(); });
  } catch (const std::system_error&) {  // no thread is to be had: nobody watches
  }
}

stuck_watch::~stuck_watch() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  ends_.notify_one();
  thread_.join();
}

void stuck_watch::begin(std::uint32_t i) {
  const std::lock_guard lock(mutex_);
  pes_[i].runs = pthread_getcpuclockid(pthread_self(), &pes_[i].clock) == 0;
}

void stuck_watch::loop() {
  pthread_setname_np(pthread_self(), "orrery-watch");
  const std::chrono::nanoseconds pause(std::max<std::int64_t>(limit_ns_ / looks_per_limit, 1'000'000));
  std::int64_t last = transport::real_now_ns();
  std::unique_lock lock(mutex_);
  while (!ends_.wait_for(lock, pause, [this] { return ending_; })) {
    const std::int64_t now = transport::real_now_ns();
    const bool was_stopped = now - last > 2 * pause.count();  // the program, or the machine
    last = now;
    for (std::uint32_t i = 0; i < pes_.size(); ++i)
      if (pes_[i].runs) look_at(i, now, was_stopped);
  }
}

void stuck_watch::look_at(std::uint32_t i, std::int64_t now, bool was_stopped) {
  watched& w = pes_[i];
  const pe& p = node_.local(node_.first_pe() + i);
  const published_counters words = p.published();
  const std::int64_t cpu = cpu_time(w.clock);
  const std::uint64_t at = words[at_word].load(std::memory_order_relaxed);
  const bool asleep = words[asleep_word].load(std::memory_order_relaxed) != 0;
  if (asleep || was_stopped || at != w.published_at || !p.stopping()) {
    w.polled_ns = now;
  } else if (!w.said_end && now - w.polled_ns >= limit_ns_ / 2) {
    w.said_end = true;
    say_end(p);
  }
  if (asleep || was_stopped || at != w.published_at || cpu - w.cpu_ns > (now - w.since_ns) / idle_share || cpu < 0) {
    w.said = w.said && !asleep && at == w.published_at;
    w.published_at = at;
    w.cpu_ns = cpu;
    w.since_ns = now;
    return;
  }
  if (w.said || now - w.since_ns < limit_ns_) return;
  w.said = true;
  const std::optional<std::string> method = method_of(p);
  if (!method) return;
  const std::string text = fmt::format(
      "orrery: PE {}: {} has waited for {} s without using the processor, and nothing else runs on this PE meanwhile. It may wait "
      "for a lock that a parked method holds, for a thread, or for a file: let methods wait by means of Orrery only "
      "(--orrery-stuck sets the time)\n",
      p.id(), *method, static_cast<double>(limit_ns_) / 1e9);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void stuck_watch::say_end(const pe& p) const {
  const std::optional<std::string> method = method_of(p);
  if (!method) return;
  const std::string text = fmt::format(
      "orrery: PE {}: the program ended {} s ago, but {} still runs there. It is waited for until it returns, or lets others run: "
      "by a call to another PE, sleep_for, yield (--orrery-stuck sets twice the time)\n",
      p.id(), static_cast<double>(limit_ns_ / 2) / 1e9, *method);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

std::optional<std::string> stuck_watch::method_of(const pe& p) {
  activation* at = nullptr;
  activation a{};
  if (!copy_of(&p.active_, at)) return "a method";
  if (at == nullptr) return std::nullopt;
  if (!copy_of(at, a)) return "a method";
  for (const handler* const h : own_handlers())
    if (h == a.method) return fmt::format("{}::{}", h->class_name, h->method);
  return a.method == nullptr ? "a process function, a constructor or a destructor" : "a method";
}

}  // namespace orrery::scheduler
