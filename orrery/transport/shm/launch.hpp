// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/transport/error.hpp>
#include <orrery/transport/shm/peer.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace orrery::transport {

class shm_world;

/// How a node that was started here ended.
struct node_exit {
  std::uint32_t node = 0;
  pid_t pid = 0;
  bool killed = false;  ///< by a signal
  int value = 0;        ///< the exit status, or the signal; -1: not known
  /// A clause for people: "exited with status 1", "was killed by signal 9 (Killed)".
  std::string how;

  [[nodiscard]] bool ok() const noexcept { return !killed && value == 0; }
};

/// The environment of a launched node.
struct inherited_world {
  int fd = -1;
  std::uint32_t node = 0;
};

/// If another node launched this OS process: what to join (shm_world::join_inherited). To be asked
/// once, before there are threads: it removes the variable from the environment, so that OS
/// processes started from here are not taken for nodes.
[[nodiscard]] result<std::optional<inherited_world>> take_inherited_world();

// Starts the other nodes of a world on this machine, as OS processes of the same program, without a
// launcher or a daemon.
//
// They get the same arguments and environment and, in ORRERY_INTERNAL_JOIN, an open descriptor of
// the world and the number that is reserved for them: PE numbers are known before anybody has
// started. Their standard input is /dev/null. They are started as by vfork, whatever the size of
// this OS process.
//
// Ownership: of the node that launches; the world outlives it. The destructor kills and reaps those
// that still run. If this node is killed, the monitors of the others see it. Not thread-safe; the
// calls block the thread.
class node_launcher {
 public:
  /// Starts nodes [world.node() + 1, world.node() + world.reserved_nodes()). `arguments`: all of
  /// them with argv[0]; empty: those of this OS process. If one cannot be started, or the last is
  /// not after `limit`, none is, and a world of which this is the first node has ended.
  [[nodiscard]] static result<wire::unique_ptr<node_launcher>> start(
      shm_world& world, std::span<const std::string> arguments = {},
      std::chrono::milliseconds limit = std::chrono::milliseconds::max());
  node_launcher(const node_launcher&) = delete;
  node_launcher& operator=(const node_launcher&) = delete;
  ~node_launcher();

  /// Until all are alive. Fails with `gone` when one has ended before, with `timed_out` when
  /// `limit` has passed since start() was called: it takes long itself where there are very many.
  /// The message names a node.
  [[nodiscard]] result<void> wait_for_nodes(std::chrono::milliseconds limit);
  /// Until all have ended, or for `limit`. Returns those that have ended since the last call.
  [[nodiscard]] std::vector<node_exit> wait_for_exit(std::chrono::milliseconds limit);
  [[nodiscard]] std::size_t running() const noexcept;
  /// Sends a signal to all that run.
  void signal_all(int signal) noexcept;

 private:
  struct child {
    std::uint32_t node = 0;
    pid_t pid = 0;
    peer process;
    std::optional<node_exit> exit;  // until it has been reported
    bool reaped = false;
  };
  explicit node_launcher(shm_world& world) noexcept : world_(world) {}
  [[nodiscard]] result<void> launch_all(std::span<const std::string> arguments, std::chrono::milliseconds limit);
  [[nodiscard]] result<void> spawn(std::uint32_t node, char* const* arguments, std::span<char* const> environment);
  void reap(child& c);
  bool reap_all();
  void wait_some(std::chrono::milliseconds limit);

  shm_world& world_;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  std::vector<child> children_;
};

}  // namespace orrery::transport
