// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/transport/shm/error.hpp>

#include <cstdint>
#include <memory>
#include <string_view>

namespace orrery::transport {

class shm_world;

/// Told by a monitor, on its thread: be short, post the news to a PE. Of each node each thing is
/// told at most once, and nothing of this node itself.
class membership_observer {
 public:
  virtual ~membership_observer() = default;
  virtual void node_joined(std::uint32_t node) noexcept = 0;
  /// Of a node that came and went between two looks node_joined is not told before.
  virtual void node_left(std::uint32_t node) noexcept = 0;
  /// As node_left, but it ended without leaving. `how` is a clause for people: "was killed by
  /// signal 9 (Killed)".
  virtual void node_lost(std::uint32_t node, std::string_view how) noexcept = 0;
  /// end_world was called somewhere.
  virtual void world_ending() noexcept = 0;
  /// The first node is lost, and `how`. It follows node_lost(0, how); nothing follows it.
  virtual void world_lost(std::string_view how) noexcept = 0;
};

// Sees nodes come and go.
//
// Problem: an OS process that is killed says nothing, and nobody may spend time looking.
//
// So one thread of each node blocks in poll() on a pidfd of every other node, which the kernel
// makes readable when that OS process has ended, and on this node's kick pipe, into which those
// write who have changed the tables. Idle, it costs nothing: it has no period, unless the kernel or
// the limit of open files gives no pidfd; then it looks once a second at those that it has none of.
//
// Every node sees the end of every other for itself, and whoever is first changes the table. Nodes
// that are there when it starts are told as joined.
//
// Ownership: of the node, destroyed before `world` and `observer`. The destructor stops the thread;
// no call to the observer comes after it. It must not be destroyed from such a call.
class membership_monitor {
 public:
  [[nodiscard]] static result<std::unique_ptr<membership_monitor>> start(shm_world& world,
                                                                         membership_observer& observer);
  membership_monitor(const membership_monitor&) = delete;
  membership_monitor& operator=(const membership_monitor&) = delete;
  ~membership_monitor();

 private:
  class impl;
  explicit membership_monitor(std::unique_ptr<impl> state) noexcept;
  std::unique_ptr<impl> impl_;
};

}  // namespace orrery::transport
