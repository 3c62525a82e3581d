// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/mpi/launcher_barrier.hpp>

#include <array>
#include <cerrno>
#include <cstddef>
#include <string_view>

#include <sys/socket.h>
#include <unistd.h>

namespace orrery::transport {

bool wait_for_all_at_launcher(int fd) noexcept {
  constexpr std::string_view question = "cmd=barrier_in\n";
  constexpr std::string_view answer = "cmd=barrier_out";
  for (std::string_view left = question; !left.empty();) {
    const ssize_t n = ::write(fd, left.data(), left.size());
    if (n < 0 && errno != EINTR) return false;
    if (n > 0) left.remove_prefix(static_cast<std::size_t>(n));
  }
  // Byte by byte: what follows the line is for the library.
  std::array<char, 64> line{};
  for (std::size_t used = 0; used < line.size();) {
    const ssize_t n = ::read(fd, &line[used], 1);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    if (line[used] == '\n') return std::string_view(line.data(), used).starts_with(answer);
    ++used;
  }
  return false;
}

void end_all_at_launcher(int fd) noexcept {
  constexpr std::string_view request = "cmd=abort exitcode=1\n";
  (void)::send(fd, request.data(), request.size(), MSG_NOSIGNAL);
}

}  // namespace orrery::transport
