// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/future.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

struct iovec;

/// Files, pipes and sockets. Each function parks the calling process until the kernel is done, and
/// its PE goes on with others; none blocks the PE.
///
/// They are to be called in a process (usage_error else), and take descriptors as open(2) gives
/// them, with or without O_NONBLOCK. They throw std::system_error, whose what() names the call, the
/// file, offset and length: "read of 4096 bytes at offset 0 of descriptor 7 (/data/x): Input/output
/// error"; and `stopped` once the runtime shuts down: what waits then is cancelled. (The
/// destructors of objects that end with the runtime may use files, and `close` closes at any time.)
///
/// A buffer belongs to the kernel until the call returns, or until the future of a started one is
/// ready; dropping that future does not make it yours. A descriptor must not be closed meanwhile.
namespace orrery::io {

inline constexpr std::chrono::nanoseconds forever = std::chrono::nanoseconds::max();

// --- files: at an offset -------------------------------------------------------------------------

/// Reads as pread(2) does: returns how many bytes it got, 0 at the end of the file.
[[nodiscard]] std::size_t read(int fd, std::span<std::byte> into, std::uint64_t offset);
/// Writes as pwrite(2) does: returns how many bytes it wrote, which may be fewer.
[[nodiscard]] std::size_t write(int fd, std::span<const std::byte> from, std::uint64_t offset);
/// As readv(2) does, at an offset; returns how many bytes it got.
[[nodiscard]] std::size_t readv(int fd, std::span<const iovec> into, std::uint64_t offset);
/// As writev(2) does, at an offset; returns how many bytes it wrote.
[[nodiscard]] std::size_t writev(int fd, std::span<const iovec> from, std::uint64_t offset);

/// Reads until the buffer is full or the file ends; returns the bytes that it got.
[[nodiscard]] std::size_t read_all(int fd, std::span<std::byte> into, std::uint64_t offset);
/// Writes everything.
void write_all(int fd, std::span<const std::byte> from, std::uint64_t offset);

/// Returns when the file is on its drive.
void fsync(int fd);
/// As fsync, but without times and other attributes that reading does not need.
void fdatasync(int fd);
/// `mode`: see fallocate(2); 0 makes the file that long at least, with its blocks reserved.
void fallocate(int fd, std::uint64_t offset, std::uint64_t length, int mode = 0);

/// Opens as open(2) does, always with O_CLOEXEC.
[[nodiscard]] int open(const std::string& path, int flags, unsigned mode = 0644);
/// Closes; the descriptor is gone also when this throws.
void close(int fd);

// --- streams: pipes, sockets, terminals; a file's current position -------------------------------

/// Waits until there is something to read and returns how many bytes it got; 0: the other side has
/// closed.
[[nodiscard]] std::size_t read(int fd, std::span<std::byte> into);
/// Waits until there is room and returns how many bytes it wrote. Writing to what the other side
/// has closed is EPIPE and no signal.
[[nodiscard]] std::size_t write(int fd, std::span<const std::byte> from);
/// As read, into several buffers.
[[nodiscard]] std::size_t readv(int fd, std::span<const iovec> into);
/// As write, from several buffers.
[[nodiscard]] std::size_t writev(int fd, std::span<const iovec> from);
/// Reads until the buffer is full or the other side closes; returns the bytes that it got.
[[nodiscard]] std::size_t read_all(int fd, std::span<std::byte> into);
/// Writes everything.
void write_all(int fd, std::span<const std::byte> from);

/// Waits until one of the events of poll(2) is there and returns those that are, POLLERR and
/// POLLHUP included; 0 when the time is over.
[[nodiscard]] unsigned poll(int fd, unsigned events, time_limit timeout = forever);
/// Waits until a read would not wait (a connection to accept, an end, and an error count, too);
/// false when the time is over.
[[nodiscard]] bool wait_readable(int fd, time_limit timeout = forever);
/// The same for a write.
[[nodiscard]] bool wait_writable(int fd, time_limit timeout = forever);

// --- several at once -----------------------------------------------------------------------------

/// Starts a request and returns at once; what it throws is thrown by the future. A process may have
/// any number of them on their way; while the PE has more than 1,024 on files, starting another one
/// parks.
[[nodiscard]] future<std::size_t> start_read(int fd, std::span<std::byte> into, std::uint64_t offset);
/// As start_read, for io::write at an offset.
[[nodiscard]] future<std::size_t> start_write(int fd, std::span<const std::byte> from, std::uint64_t offset);
/// As start_read, of a stream.
[[nodiscard]] future<std::size_t> start_read(int fd, std::span<std::byte> into);
/// As start_read, for io::write to a stream.
[[nodiscard]] future<std::size_t> start_write(int fd, std::span<const std::byte> from);
/// Covers what was written when it starts: wait for the writes first.
[[nodiscard]] future<void> start_fsync(int fd);
/// As start_fsync, by fdatasync.
[[nodiscard]] future<void> start_fdatasync(int fd);

/// Owns a descriptor and closes it, errors unseen: call close() to see them. Any thread may destroy
/// it.
class descriptor {
 public:
  descriptor() noexcept = default;
  explicit descriptor(int fd) noexcept : fd_(fd) {}
  descriptor(const std::string& path, int flags, unsigned mode = 0644) : fd_(io::open(path, flags, mode)) {}
  descriptor(descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  descriptor& operator=(descriptor&& other) noexcept {
    descriptor taken(std::move(other));
    std::swap(fd_, taken.fd_);
    return *this;
  }
  ~descriptor();

  /// The descriptor, which stays owned; -1 if there is none.
  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] explicit operator bool() const noexcept { return fd_ >= 0; }
  /// Gives the descriptor to the caller, who closes it.
  [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }
  /// May park. Throws std::system_error; the descriptor is gone all the same.
  void close() {
    if (fd_ >= 0) io::close(release());
  }

 private:
  int fd_ = -1;
};

}  // namespace orrery::io
