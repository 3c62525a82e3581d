// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests only: a drive that fails, tears pages and waits when it is told to.

#include <orrery/process/describe.hpp>
#include <orrery/storage/array_device.hpp>
#include <orrery/storage/internal/waiting.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <system_error>

namespace orrery::storage::testing {

/// The requests to a test device, as its drive saw them.
struct drive_log {
  std::uint64_t reads = 0;
  std::uint64_t writes = 0;
  std::uint32_t most_at_once = 0;
  std::uint64_t last_memory = 0;  ///< address of the last transfer
};

class test_device : public array_device {
 public:
  using array_device::array_device;

  /// The next `n` writes (reads) fail with this error.
  void fail_writes(int n, int code) {
    failing_writes_ = n;
    code_ = code;
  }
  void fail_reads(int n, int code) {
    failing_reads_ = n;
    code_ = code;
  }
  /// The next write stops in the middle of the page, as when the power fails.
  void tear_next_write() { tear_ = true; }
  /// Writes wait at the drive until they are released.
  void hold_writes() { holding_ = true; }
  void release_writes() {
    holding_ = false;
    held_.wake_all();
  }
  /// Reads wait at the drive until so many are there.
  void gather_reads(std::uint32_t n) { gather_ = n; }
  [[nodiscard]] drive_log log() const { return log_; }

 protected:
  void read_raw(std::span<std::byte> into, std::uint64_t index) override {
    ++log_.reads;
    log_.last_memory = reinterpret_cast<std::uintptr_t>(into.data());
    log_.most_at_once = std::max(log_.most_at_once, ++inside_);
    if (inside_ < gather_) gathered_.wait();
    gather_ = 0;
    gathered_.wake_all();
    --inside_;
    if (failing_reads_ > 0 && failing_reads_-- > 0) fail(index);
    array_device::read_raw(into, index);
  }
  void write_raw(std::span<const std::byte> from, std::uint64_t index) override {
    ++log_.writes;
    log_.last_memory = reinterpret_cast<std::uintptr_t>(from.data());
    while (holding_) held_.wait();
    if (failing_writes_ > 0 && failing_writes_-- > 0) fail(index);
    if (tear_) {
      tear_ = false;
      page half = page(from.size());
      std::copy_n(from.begin(), from.size() / 2, half.writable().begin());
      array_device::write_raw(half.bytes(), index);
      throw std::system_error(EIO, std::system_category(), "the power failed");
    }
    array_device::write_raw(from, index);
  }

 private:
  [[noreturn]] void fail(std::uint64_t index) const {
    throw std::system_error(code_, std::system_category(), "injected at page " + std::to_string(index));
  }

  int failing_writes_ = 0;
  int failing_reads_ = 0;
  int code_ = EIO;
  bool tear_ = false;
  bool holding_ = false;
  std::uint32_t gather_ = 0;
  std::uint32_t inside_ = 0;
  internal::wait_queue held_;
  internal::wait_queue gathered_;
  drive_log log_;
};
ORRERY_PROCESS(test_device, fail_writes, fail_reads, tear_next_write, hold_writes, release_writes, gather_reads, log);

}  // namespace orrery::storage::testing
