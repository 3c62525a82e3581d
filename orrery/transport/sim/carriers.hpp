// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/transport/mpi/carrier.hpp>
#include <orrery/transport/mpi/cluster.hpp>
#include <orrery/transport/mpi/engine.hpp>
#include <orrery/transport/shm/world.hpp>
#include <orrery/transport/sim/network.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orrery::transport {

/// The carriers of a simulated world: each node has the one that it has under MPI, with memory of
/// its own, and what a message library does is simulated.
///
/// Problem: the order in which frames, blocks and evictions of many nodes meet decides what arrays,
/// groups and names see of each other, and under MPI it can be neither chosen nor repeated. Here
/// messages of one pair and one tag keep their order, as MPI promises. All others overtake each
/// other by the delays of the network model, which follow from the seed. A node learns of a lost
/// one when the eviction reaches it, and not when the others do.
///
/// A cut holds up what one node sends to another, as TCP does. From then on nodes give signs of
/// life and miss those that are silent. They stop when nothing was held up for some times of the
/// silence: all that a cut can lead to has happened then, and signs of life would keep a world that
/// waits in vain from standing still.
///
/// Owned by the universe. One thread. Nothing happens by itself: the simulator drives a node when
/// its PEs have run, and at the times that it is told by `wanted`.
class sim_carriers {
 public:
  using clock = std::function<std::int64_t()>;
  /// A node is to be driven at that time.
  using wanted = std::function<void(std::uint32_t node, std::int64_t at_ns)>;
  /// A node ends itself, as the others miss it or it misses the first one.
  using ender = std::function<void(std::uint32_t node)>;

  /// All of them outlive it. It is made at the time 0 of the settings.
  sim_carriers(const sim_settings& settings, network& net, clock now, wanted drive_at, ender ends);
  sim_carriers(const sim_carriers&) = delete;
  sim_carriers& operator=(const sim_carriers&) = delete;
  ~sim_carriers();

  [[nodiscard]] mpi_carrier& carrier(std::uint32_t node) noexcept;
  [[nodiscard]] cluster_members& members(std::uint32_t node) noexcept;
  /// The memory of the node, in which it is the only one.
  [[nodiscard]] shm_world& memory(std::uint32_t node) noexcept;
  [[nodiscard]] const cluster_map& map(std::uint32_t node) const noexcept;

  /// Does what the node can do now, and says when the next message arrives there.
  void drive(std::uint32_t node);
  /// The node ends now, without a word. Messages that it has sent arrive nevertheless.
  void kill(std::uint32_t node) noexcept;
  /// The network stacks of the others notice that this node is gone, but for those that a cut keeps
  /// from hearing of it: their carriers suspect it.
  void notice(std::uint32_t node, std::string_view how);
  /// The node takes no new work; the end of the first one is that of the world.
  void say_leaving(std::uint32_t node) noexcept;

 private:
  class machine;

  /// When a message of now leaves a cut behind: now, later, or never.
  [[nodiscard]] std::int64_t passes_at(std::uint32_t from, std::uint32_t to) const;
  void watch_for_silent_nodes();
  [[nodiscard]] std::optional<std::int64_t> next_cut() const;

  const sim_settings& settings_;
  network& net_;
  clock now_;
  wanted drive_at_;
  ender ends_;
  std::int64_t begin_;
  std::int64_t watched_until_;  // silent nodes are missed
  std::string loss_;  // the latest
  std::vector<wire::unique_ptr<machine>> machines_;  // by node
};

}  // namespace orrery::transport
