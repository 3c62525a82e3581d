// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/io.hpp>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include <sched.h>

namespace orrery::scheduler {

class io_pool_engine;

/// Helper threads that make system calls for the PEs of a node, where io_uring is not to be had:
/// containers and seccomp filters often forbid it.
///
/// A few threads (started as they are needed) take requests from one queue and block for their PE.
/// A request that may wait for ever must not keep one of them: streams are tried without blocking,
/// and one more thread polls those that were not ready, however many they are.
///
/// Owned by the node, without threads until the first use, ends after all PEs have. Called from any
/// thread. Invariants, under mutex_: (1) a request is in queue_ iff its stage is `queued`, in
/// waiting_ iff `waiting`; (2) only the polling thread takes requests out of waiting_.
class io_pool {
 public:
  /// Its threads will run on the cores that the calling thread may use.
  io_pool() noexcept;
  io_pool(const io_pool&) = delete;
  io_pool& operator=(const io_pool&) = delete;
  ~io_pool();

  /// Says on stderr, once, why helper threads are used.
  void explain(std::string_view why);

  void submit(io_pool_engine& from, io_request& r);
  /// True if the request was still queued; it is the caller's again. Else it will be completed,
  /// soon if it waits.
  [[nodiscard]] bool cancel(io_request& r);

 private:
  struct job {
    io_pool_engine* from;
    io_request* request;
  };
  void help();
  void watch();
  void carry_out(const job& j);
  void wait_for_readiness(const job& j);
  void wake_watcher() noexcept;
  void begin_thread() noexcept;

  std::mutex mutex_;  // of what follows
  std::condition_variable work_;
  std::deque<job> queue_;
  std::vector<job> waiting_;
  std::vector<std::thread> helpers_;
  std::thread watcher_;
  std::size_t idle_ = 0;
  bool stop_ = false;
  bool explained_ = false;
  int wake_fd_ = -1;  // an eventfd, once there is a watcher
  cpu_set_t cores_;  // PEs are bound to one each; helpers are not
};

/// I/O of one PE through the helper threads. They put what is done into a list and ring the PE's
/// doorbell.
class io_pool_engine final : public io_engine {
 public:
  io_pool_engine(pe& owner, io_pool& pool) noexcept : io_engine(owner), pool_(pool) {}

  bool poll() override;
  [[nodiscard]] bool ready() const noexcept override { return ready_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool sleeps() const noexcept override { return false; }
  void sleep(std::uint32_t, std::int64_t) noexcept override {}

  /// Called by a helper thread, last of all: the request's result is there.
  void completed(io_request& r, std::int64_t result) noexcept;

 private:
  void submit(io_request& r) override { pool_.submit(*this, r); }
  void submit_cancel(io_request& r) override;

  io_pool& pool_;
  std::mutex mutex_;  // of what follows
  io_request* first_ = nullptr;
  io_request* last_ = nullptr;
  std::atomic<bool> ready_{false};  // first_ is not null; also read without the mutex
};

}  // namespace orrery::scheduler
