// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/io.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <csignal>
#include <expected>
#include <string>

#include <liburing.h>

namespace orrery::scheduler {

/// I/O through an io_uring of the PE's own.
///
/// Requests are collected while processes run and submitted by one system call when the PE polls; a
/// large transfer is submitted at once, and so is whatever comes while the kernel has nothing to
/// do, for then waiting costs more than the system call. Completions are posted when the PE enters
/// the kernel (DEFER_TASKRUN) and a flag in shared memory says that it should: a poll that finds
/// nothing costs two loads.
///
/// A PE that sleeps while requests are outstanding waits for two things, a completion and its
/// doorbell. It waits in the ring, where a FUTEX_WAIT request (Linux 6.7) stands for the doorbell;
/// that request stays from one sleep to the next until the bell rings. Kernels before 6.7 cannot do
/// that: there the PE naps, 64 us at first and 4 ms at most.
///
/// Streams: SIGPIPE is blocked on the PE's thread while the ring exists, so that writing to a
/// closed pipe is an error and not the end of the program.
///
/// Invariants: (1) requests that the ring had no room for are in `unsent_`, and only then; (2)
/// `armed_` iff a FUTEX_WAIT was put into the ring and its completion not yet taken out.
class io_ring_engine final : public io_engine {
 public:
  /// `basic`: as on a kernel that has none of the newer features. The error says which call failed
  /// and why.
  [[nodiscard]] static std::expected<wire::unique_ptr<io_engine>, std::string> make(pe& owner, bool basic);
  ~io_ring_engine() override;

  bool poll() override;
  [[nodiscard]] bool ready() const noexcept override { return io_uring_cq_ready(&ring_) != 0 || must_enter(); }
  [[nodiscard]] bool sleeps() const noexcept override { return outstanding() != 0 || armed_; }
  void sleep(std::uint32_t word, std::int64_t deadline_ns) noexcept override;

 private:
  explicit io_ring_engine(pe& owner) noexcept : io_engine(owner) {}
  void submit(io_request& r) override;
  void submit_cancel(io_request& r) override;

  [[nodiscard]] bool must_enter() const noexcept {
    return (IO_URING_READ_ONCE(*ring_.sq.kflags) & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)) != 0;
  }
  [[nodiscard]] io_uring_sqe* take_sqe() noexcept;
  static void prepare(io_uring_sqe& sqe, io_request& r) noexcept;
  void put_unsent(io_request& r) noexcept;
  bool enter() noexcept;
  void flush() noexcept;
  bool reap();
  bool arm(std::uint32_t word) noexcept;
  void block_sigpipe() noexcept;

  io_uring ring_{};
  io_request* unsent_ = nullptr;
  io_request* last_unsent_ = nullptr;
  std::int64_t nap_ns_ = 0;
  bool has_futex_ = false;
  bool armed_ = false;
  bool sigpipe_blocked_ = false;  // by this engine
};

}  // namespace orrery::scheduler
