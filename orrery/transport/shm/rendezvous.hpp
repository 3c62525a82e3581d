// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/transport/error.hpp>
#include <orrery/transport/shm/peer.hpp>
#include <orrery/transport/shm/unique_fd.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace orrery::transport {

/// The content of a rendezvous file: whom to ask for the world.
struct world_address {
  peer_id creator;
  int fd = -1;  ///< of the world segment, in the creator
  std::uint64_t nonce = 0;
  std::uint64_t pid_namespace = 0;

  friend bool operator==(const world_address&, const world_address&) = default;
};

// The file by which a named world is found, and the lock under which it is made, joined and ended.
//
// Problem: many may come at once, each may be killed at any instruction, the directory is open to
// all users, and a world that was killed leaves its file.
//
// So everything is done under flock() of the file, which the kernel drops when its holder dies, and
// when the lock is held the path is compared with the file: whoever locked a file that was removed
// meanwhile starts over. A file belongs to one world: a stale one is removed, not written again.
// Its content matters no longer than the creator lives. Files of other users, links, and files that
// others may read or write are refused.
//
// A second lock, shared and held for as long as a member lives (`hold`), tells the living from the
// dead where pids mean nothing: in other PID namespaces, and when the creator's descriptor is not
// what the file says.
//
// Ownership: RAII; the destructor unlocks. Not thread-safe. `enter` and `lock` block the thread.
class rendezvous {
 public:
  /// Opens and locks; makes the file if there is none. Waits at most `patience` for one that holds
  /// it.
  [[nodiscard]] static result<wire::unique_ptr<rendezvous>> enter(std::string_view name, std::string_view directory,
                                                                  std::chrono::milliseconds patience);
  /// The same for tools: read-only, not locked; `not_found` if there is none.
  [[nodiscard]] static result<wire::unique_ptr<rendezvous>> look(std::string_view name, std::string_view directory);
  /// Removes the file of that name if it is that of the world `nonce`, or, with nonce 0, if nobody
  /// holds it and its creator is gone. False if it is not.
  static bool remove_file(std::string_view name, std::string_view directory, std::uint64_t nonce,
                          std::chrono::milliseconds patience) noexcept;

  rendezvous(const rendezvous&) = delete;
  rendezvous& operator=(const rendezvous&) = delete;
  ~rendezvous();

  /// The content of the file; nothing if it is empty: just made, or left by one who died at once.
  [[nodiscard]] result<std::optional<world_address>> read() const;
  [[nodiscard]] result<void> write(const world_address& address);
  /// Removes the file; only while locked. False, with errno, if it cannot: ENOENT if the path names
  /// another file by now.
  bool remove() noexcept;

  /// Shows others that a member of this world lives as long as this object.
  void hold() noexcept;
  /// True if another object, in any OS process, holds.
  [[nodiscard]] bool held_by_others() const noexcept;

  /// False, with errno, if the system refuses; with EWOULDBLOCK if another holds it for longer than
  /// `patience`, or if the path names another file by now.
  [[nodiscard]] bool lock(std::chrono::milliseconds patience) noexcept;
  void unlock() noexcept;
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  rendezvous(std::string path, unique_fd fd) noexcept;
  [[nodiscard]] bool path_is_this() const noexcept;

  std::string path_;
  unique_fd fd_;
  bool locked_ = false;
};

/// [A-Za-z0-9._-]{1,48}
[[nodiscard]] result<void> check_world_name(std::string_view name);
/// `configured` if it is not empty, else $ORRERY_SHM_DIR, else /dev/shm.
[[nodiscard]] std::string rendezvous_directory(std::string_view configured);
/// The begin of the names of this user's files.
[[nodiscard]] std::string rendezvous_prefix();

}  // namespace orrery::transport
