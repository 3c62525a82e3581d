// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/transport/error.hpp>
#include <orrery/transport/world.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstdint>
#include <string_view>

namespace orrery::transport {

class shm_world;

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
class membership_monitor final : public membership_watch {
 public:
  [[nodiscard]] static result<wire::unique_ptr<membership_monitor>> start(shm_world& world,
                                                                          membership_observer& observer);
  membership_monitor(const membership_monitor&) = delete;
  membership_monitor& operator=(const membership_monitor&) = delete;
  ~membership_monitor() override;

 private:
  class impl;
  explicit membership_monitor(wire::unique_ptr<impl> state) noexcept;
  wire::unique_ptr<impl> impl_;
};

}  // namespace orrery::transport
