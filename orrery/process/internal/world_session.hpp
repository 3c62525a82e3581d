// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/options.hpp>
#include <orrery/process/runtime.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/transport/mpi/world.hpp>
#include <orrery/transport/shm/launch.hpp>
#include <orrery/transport/shm/world.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstdint>
#include <vector>

namespace orrery::detail {

/// The world that one run of the runtime takes part in, and the nodes that it has started. They are
/// torn down in the reverse order of the members. A node that is alone has neither world.
struct world_session {
  wire::unique_ptr<transport::shm_world> world;
  wire::unique_ptr<transport::mpi_world> machines;  ///< in its place where MPI starts the nodes
  wire::unique_ptr<transport::node_launcher> launcher;
  bool launched = false;  ///< by another node, or a rank that is not the first: runs no main
  std::vector<std::uint32_t> announced;  ///< nodes that are known to be lost
  std::uint64_t failed_posts = 0;

  [[nodiscard]] transport::world* any() const noexcept {
    return machines != nullptr ? static_cast<transport::world*>(machines.get()) : world.get();
  }
};

/// True in a node that another one has started, from when it has joined. If it started nodes of its
/// own for what follows in main, and those did, too, it would never end.
[[nodiscard]] bool has_served() noexcept;

/// Makes or joins the world that the options and the environment name, and starts its other nodes.
/// Throws world_error.
[[nodiscard]] world_session open_world(const scheduler::node_settings& settings, const options& o,
                                       const args& arguments);
/// Waits until the nodes that this one has started are there. Throws world_error.
void wait_for_nodes(world_session& s, const options& o);
/// Waits until the nodes that this one has started have ended. A node that did not end as it should
/// turns main's 0 into 1, as no process is left to be told; a node that somebody killed does not.
[[nodiscard]] int end_world(world_session& s, int result);
/// Adds the failed posts of the nodes that this one has started. They have ended; their counters
/// outlive them.
void count_failures_of_launched(world_session& s);

}  // namespace orrery::detail
