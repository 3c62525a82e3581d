// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/transport/shm/unique_fd.hpp>

#include <cstdint>
#include <unordered_map>

namespace orrery::transport {

/// Sleeps until a TCP socket of this OS process has something to read.
///
/// Problem: MPI libraries offer no wait that sleeps. To ask one every 400 us, whether something has
/// come, costs several hundredths of a core for each rank, and a longer pause makes messages wait.
/// So this class looks for the sockets of the OS process, whoever has opened them, and sleeps until
/// one has something. That is a hint: a library may use no sockets, or another one by now, so each
/// sleep has a limit. A socket that stays readable while nobody reads from it, as one of the
/// program's own may, counts only when something more comes.
///
/// Owned by the world. One thread sleeps and looks for sockets; any thread may call wake().
class socket_watch {
 public:
  enum class cause : std::uint8_t { time, socket, call };

  socket_watch();

  /// Sleeps until a socket has something, wake() was called, or the time is over.
  cause sleep(std::int64_t ns) noexcept;
  /// Sleeps until wake() was called, or the time is over.
  cause nap(std::int64_t ns) noexcept;
  /// Ends the sleep or nap, or the next one.
  void wake() noexcept;
  /// Finds the sockets that there are now. Costs a microsecond for each file descriptor; it does
  /// nothing where that would be more than a five-thousandth of the time.
  void look_for_sockets() noexcept;

  /// How many sockets were found. For tests.
  [[nodiscard]] std::size_t found() const noexcept { return returns_.size(); }

 private:
  void take_call() noexcept;
  void watch(int fd) noexcept;
  void note(int fd) noexcept;

  unique_fd events_;
  unique_fd call_;
  std::int64_t next_look_ns_ = 0;
  // of each socket: how often it has ended a sleep at once, without a pause
  std::unordered_map<int, int> returns_;
};

}  // namespace orrery::transport
