// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/transport/world.hpp>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orrery::transport {

/// Where the nodes and PEs of a world of several machines are. Nodes are numbered as ranks are, PEs
/// in the order of their nodes. Made at the start, never changed.
class cluster_map {
 public:
  struct place {
    std::uint32_t machine = 0;
    std::uint32_t first_pe = 0;
    std::uint32_t pe_count = 0;
    std::uint32_t local_node = 0;  ///< its number in the shared memory of its machine
    std::uint32_t local_first_pe = 0;  ///< of its PEs there
    /// Bytes of its segment: no block of it is larger.
    std::uint64_t memory = std::uint64_t{1} << 40;
    std::uint64_t ring = std::uint64_t{1} << 30;  ///< bytes: none of its rings is larger
  };

  /// The largest part of a block that may travel as one message: MPI counts with 31 bits.
  static constexpr std::uint64_t largest_piece = std::uint64_t{1} << 30;
  /// A 10 Gb/s network carries it in 54 ms: so long what follows has to wait.
  static constexpr std::uint64_t usual_piece = std::uint64_t{64} << 20;

  cluster_map(std::vector<place> nodes, std::uint32_t own, std::uint64_t piece = usual_piece)
      : nodes_(std::move(nodes)), own_(own), piece_(piece) {}

  [[nodiscard]] std::uint32_t nodes() const noexcept { return static_cast<std::uint32_t>(nodes_.size()); }
  [[nodiscard]] std::uint32_t pes() const noexcept { return nodes_.back().first_pe + nodes_.back().pe_count; }
  [[nodiscard]] std::uint32_t own() const noexcept { return own_; }
  [[nodiscard]] const place& at(std::uint32_t node) const noexcept { return nodes_[node]; }
  /// Bytes of the parts in which blocks travel; the same in all nodes.
  [[nodiscard]] std::uint64_t piece() const noexcept { return piece_; }
  /// no_node if there is no such PE.
  [[nodiscard]] std::uint32_t node_of(std::uint32_t pe) const noexcept;
  /// The node is on another machine.
  [[nodiscard]] bool is_far(std::uint32_t node) const noexcept { return at(node).machine != at(own_).machine; }
  /// The number of a PE of this machine in its shared memory.
  [[nodiscard]] std::uint32_t local_pe(std::uint32_t pe, std::uint32_t node) const noexcept {
    return at(node).local_first_pe + (pe - at(node).first_pe);
  }
  /// The node of this machine that has that number in its shared memory.
  [[nodiscard]] std::uint32_t node_at_local(std::uint32_t local_node) const noexcept;

 private:
  std::vector<place> nodes_;
  std::uint32_t own_;
  std::uint64_t piece_;
};

/// Machines by name: hosts that come again, as in tests, are `host#2`, `host#3` and so on.
[[nodiscard]] std::vector<std::string> distinct_names(std::vector<std::string> hosts);

/// The known state of the nodes of a world of several machines: who is there, who has left, who is
/// lost.
///
/// All nodes are there from the start. Changes are seen at once, and told to an observer later, by
/// one thread.
///
/// Owned by the world. Thread-safe.
class cluster_members {
 public:
  cluster_members(std::uint32_t nodes, std::uint32_t own);

  [[nodiscard]] node_state state(std::uint32_t node) const noexcept {
    // SYNC: acquire, with change
    return static_cast<node_state>(states_[node].load(std::memory_order_acquire));
  }
  [[nodiscard]] bool is_there(std::uint32_t node) const noexcept {
    const node_state s = state(node);
    return s == node_state::alive || s == node_state::leaving;
  }
  [[nodiscard]] world_state world() const noexcept {
    return static_cast<world_state>(world_.load(std::memory_order_acquire));  // SYNC: with change
  }
  // SYNC: change
  [[nodiscard]] std::uint32_t epoch() const noexcept { return epoch_.load(std::memory_order_acquire); }
  // SYNC: change
  [[nodiscard]] std::uint64_t gone() const noexcept { return gone_.load(std::memory_order_acquire); }
  [[nodiscard]] bool has_lost_some() const noexcept { return lost_.load(std::memory_order_relaxed); }

  /// False if the node was that already, or more. `how` is a clause, for `dead`.
  bool change(std::uint32_t node, node_state to, std::string_view how = {});
  /// Tells the observer what is new. Called by one thread.
  void tell(membership_observer& observer);

 private:
  struct event {
    std::uint32_t node;
    node_state state;
    std::string how;
  };

  std::uint32_t own_;
  std::vector<std::atomic<std::uint32_t>> states_;
  std::atomic<std::uint32_t> world_;
  std::atomic<std::uint32_t> epoch_{1};
  std::atomic<std::uint64_t> gone_{0};
  std::atomic<bool> lost_{false};
  std::mutex mutex_;  // of changes and of what follows
  std::vector<event> events_;
};

}  // namespace orrery::transport
