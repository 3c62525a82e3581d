// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/node.hpp>
#include <orrery/scheduler/simulator.hpp>
#include <orrery/transport/sim/settings.hpp>
#include <orrery/wire/unique_ptr.hpp>

namespace orrery::detail {

/// All nodes of a simulated world, in this OS process.
///
/// Owned by who runs it, once.
class simulated_world {
 public:
  /// Settings that do not concern simulations are taken from `settings`.
  simulated_world(const transport::sim_settings& what, const scheduler::node_settings& settings);
  ~simulated_world();

  [[nodiscard]] scheduler::simulator& simulator() noexcept { return simulator_; }
  /// The main function has ended: so does the world.
  void leave() noexcept;

 private:
  struct members;
  scheduler::simulator simulator_;
  wire::unique_ptr<members> members_;
};

}  // namespace orrery::detail
