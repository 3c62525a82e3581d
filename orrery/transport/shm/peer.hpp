// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/transport/error.hpp>
#include <orrery/transport/shm/unique_fd.hpp>

#include <cstdint>
#include <optional>
#include <utility>

#include <sys/types.h>

namespace orrery::transport {

enum class access : std::uint8_t { read, read_write };

/// Names one OS process for ever: a pid comes back, a pid that started at that time does not.
struct peer_id {
  pid_t pid = 0;
  std::uint64_t start_time = 0;  ///< field 22 of /proc/<pid>/stat

  friend bool operator==(const peer_id&, const peer_id&) = default;
};

/// The id of an OS process that runs; nothing if there is none with that pid (a zombie runs no
/// more).
[[nodiscard]] std::optional<peer_id> find_peer(pid_t pid);
[[nodiscard]] result<peer_id> this_peer();

/// The PID namespace of this node: pids of another one mean nothing here. 0 where there is no
/// /proc.
[[nodiscard]] std::uint64_t pid_namespace() noexcept;

// A hold on another OS process, by which its end is seen and by which its files are opened.
//
// Problem: between "is pid 4711 still the one in the table?" and "open its file" the pid may have
// been given to another.
// So a peer holds a pidfd, which never means another OS process, and looks at it *after* it has
// used the pid. Where the kernel gives out no pidfd (before 5.3, some sandboxes) the start time is
// compared.
class peer {
 public:
  peer() = default;

  /// Fails with `gone` if it has ended, otherwise if the system does not let us look.
  [[nodiscard]] static result<peer> open(peer_id id);
  /// One that has ended, if the system still knows it, as it does a child that was not waited for;
  /// else a peer without a descriptor.
  [[nodiscard]] static peer open_ended(peer_id id) noexcept;

  [[nodiscard]] bool running() const noexcept;
  /// A descriptor that is readable when it has ended; -1 if the kernel gave none.
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  [[nodiscard]] peer_id id() const noexcept { return id_; }

  /// Opens descriptor `fd` of the peer a second time and makes sure that it was the peer's. The
  /// caller checks what it is.
  [[nodiscard]] result<unique_fd> open_file(int fd, int flags) const;

 private:
  peer(peer_id id, unique_fd fd) noexcept : id_(id), fd_(std::move(fd)) {}

  peer_id id_;
  unique_fd fd_;
};

}  // namespace orrery::transport
