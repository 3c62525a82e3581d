// SPDX-License-Identifier: Apache-2.0
#pragma once

// The common part of status_server and its client: a socket whose name is the nonce of the world's
// memory on this machine. Tools find it among the sockets of the system, and nothing is left of it
// when the node has ended. Each end looks whether the other one is of the same user. A tool says
// with one byte whether it wants names, too, and is told.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace orrery::transport::internal {

inline constexpr std::uint64_t largest_status = std::uint64_t{1} << 32;

/// The begin of the name.
inline constexpr std::string_view status_name = "orrery-machines-";

/// An abstract name: it begins with a zero, and lies in no folder.
inline std::pair<sockaddr_un, socklen_t> status_address(std::uint64_t nonce) {
  sockaddr_un a{};
  a.sun_family = AF_UNIX;
  const auto end = fmt::format_to_n(a.sun_path + 1, sizeof a.sun_path - 1, "{}{:016x}", status_name, nonce).out;
  return {a, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + static_cast<std::size_t>(end - a.sun_path))};
}

inline bool is_of_this_user(int socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == ::geteuid();
}

/// No call on the socket waits longer.
inline bool set_patience(int socket, std::chrono::milliseconds patience) {
  const timeval t{.tv_sec = patience.count() / 1000, .tv_usec = patience.count() % 1000 * 1000};
  return ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t) == 0 &&
         ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t) == 0;
}

/// False at the end of what comes, after an error, and when the patience is at its end.
inline bool receive_all(int socket, std::span<std::byte> into) {
  while (!into.empty()) {
    const ssize_t n = ::recv(socket, into.data(), into.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    into = into.subspan(static_cast<std::size_t>(n));
  }
  return true;
}
inline bool send_all(int socket, std::span<const std::byte> from) {
  while (!from.empty()) {
    const ssize_t n = ::send(socket, from.data(), from.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    from = from.subspan(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace orrery::transport::internal
