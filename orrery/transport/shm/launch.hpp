// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/transport/shm/error.hpp>
#include <orrery/transport/shm/peer.hpp>

#include <chrono>
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
  bool ok = false;   ///< exited with status 0
  bool killed = false;  ///< by a signal
  int value = 0;     ///< exit status or signal
  std::string how;   ///< a clause for people: "exited with status 1", "was killed by signal 9 (Killed)"
};

/// What a launched node finds in its environment.
struct inherited_world {
  int fd = -1;
  std::uint32_t node = 0;
};

/// If another node launched this OS process: by what to join. To be asked once, at start, before there are threads: it removes
/// the variable from the environment, so that OS processes started from here are not taken for nodes.
[[nodiscard]] result<std::optional<inherited_world>> take_inherited_world();

// Starts the other nodes of a world on this machine, as OS processes of the same program, without a launcher.
//
// They get the same arguments and environment and, in ORRERY_INTERNAL_JOIN, an open descriptor of the world and the number that was
// reserved for them: PE numbers are known before anybody has started. Their standard input is /dev/null. Started as by
// vfork: half a millisecond each, whatever the size of this OS process.
//
// Ownership: the node that launches owns it; it may outlive the world. The destructor kills and reaps what still runs: a node does
// not outlive its launcher unnoticed. (If the launcher is killed, monitors of the nodes see it.) Not thread-safe, but for
// how_ended.
class node_launcher {
 public:
  /// Starts nodes [world.node() + 1, world.node() + world.reserved_nodes()). `arguments`: argv of the program, argv[0] included;
  /// empty: those of this OS process. If one cannot be started those before are killed.
  [[nodiscard]] static result<node_launcher> start(shm_world& world,
                                                   std::span<const std::string> arguments = {});
  node_launcher(node_launcher&&) noexcept;
  node_launcher& operator=(node_launcher&&) noexcept;
  ~node_launcher();

  /// Blocks the thread until all are alive. Fails with `gone` as soon as one has ended, with `timed_out` at the deadline, with a
  /// message that names the node.
  [[nodiscard]] result<void> wait_for_nodes(std::chrono::milliseconds limit);
  /// Blocks the thread until all have ended or for `limit`; returns those that have ended since the last call, by node.
  [[nodiscard]] std::vector<node_exit> wait_for_exit(std::chrono::milliseconds limit);
  [[nodiscard]] std::size_t running() const noexcept;
  /// Sends a signal to all that run.
  void signal_all(int signal) noexcept;

 private:
  struct child;
  node_launcher();
  shm_world* world_ = nullptr;
  std::vector<child> children_;
};

}  // namespace orrery::transport
