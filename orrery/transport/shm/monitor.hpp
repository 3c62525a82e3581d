// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/transport/shm/error.hpp>

#include <cstdint>
#include <memory>
#include <string_view>

namespace orrery::transport {

class shm_world;

/// Told by a monitor, on the monitor's thread: be short, throw nothing, post the news to a PE. Each is told once for each node
/// and never for this node itself.
class membership_observer {
 public:
  virtual ~membership_observer() = default;
  virtual void node_joined(std::uint32_t node) noexcept = 0;
  virtual void node_left(std::uint32_t node) noexcept = 0;
  /// `how` is a clause for people: "was killed by signal 9 (Killed)", "ended without leaving the world".
  virtual void node_lost(std::uint32_t node, std::string_view how) noexcept = 0;
  /// end_world was called somewhere.
  virtual void world_ending() noexcept = 0;
  /// The first node is lost. node_lost(0) comes before it; nothing comes after it.
  virtual void world_lost(std::string_view how) noexcept = 0;
};

// Sees nodes come and go.
//
// Problem: an OS process that is killed says nothing, and nobody may spend time looking.
// So one thread of each node blocks in poll() on a pidfd of every other node, which the kernel makes readable
// when that OS process has ended, and on the kick pipe of its own node, into which those write who changed the tables. Idle, it costs
// nothing: there is no period, unless the kernel gives out no pidfd; then it looks once a second.
//
// Every node sees the end of every other for itself; the first to see it changes the table. Nodes that were there
// before the monitor are told as joined at its start.
//
// Ownership: started and destroyed by the node, before the world; `observer` and `world` outlive it. The destructor stops the thread; no
// call comes after it. It must not be destroyed from a call to the observer.
class membership_monitor {
 public:
  [[nodiscard]] static result<std::unique_ptr<membership_monitor>> start(shm_world& world,
                                                                         membership_observer& observer);
  membership_monitor(const membership_monitor&) = delete;
  ~membership_monitor();

 private:
  class impl;
  explicit membership_monitor(std::unique_ptr<impl> state) noexcept;
  std::unique_ptr<impl> impl_;
};

}  // namespace orrery::transport
