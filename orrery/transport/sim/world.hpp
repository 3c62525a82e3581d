// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/transport/sim/carriers.hpp>
#include <orrery/transport/sim/settings.hpp>
#include <orrery/transport/world.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <functional>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace orrery::transport {

/// The common state of all nodes of a simulated world: there is one OS thread, so it is plain
/// memory.
///
/// Owned by who simulates; outlives the nodes' worlds.
class sim_universe {
 public:
  explicit sim_universe(const sim_settings& settings);

  [[nodiscard]] const sim_settings& settings() const noexcept { return settings_; }
  [[nodiscard]] std::uint32_t node_of(std::uint32_t pe) const noexcept { return pe / settings_.pes; }
  /// From now on nodes see that this one is gone.
  void lose(std::uint32_t node, std::string_view how);
  /// The world ends: at once for who asks, and for its nodes when tell_end is called.
  void end() noexcept;
  void tell_end() noexcept;
  /// Called by end(): has tell_end called after the time of a message.
  std::function<void()> on_end;

  /// If the settings want them. The simulator makes them, before the nodes' worlds.
  wire::unique_ptr<sim_carriers> carriers;
  /// A node that has carriers hears what they know of others.
  void tell(std::uint32_t node);

 private:
  friend class sim_world;
  struct watcher;

  sim_settings settings_;
  std::vector<node_state> states_;
  std::vector<membership_observer*> observers_;  // of each node
  world_state state_ = world_state::running;
  std::uint32_t epoch_ = 1;
  std::uint64_t gone_ = 0;
  wire::unique_ptr<doorbell[]> bells_;
  wire::unique_ptr<std::atomic<std::uint64_t>[]> counters_;
};

/// One simulated node's view of its world. Rings are not published here: the simulator connects PEs
/// itself, as it has to know every message (`scheduler/simulator.hpp`). An offset is an address.
/// With carriers both are as under MPI, and so is what the node knows of others.
class sim_world final : public world {
 public:
  sim_world(sim_universe& universe, std::uint32_t node);
  ~sim_world() override;

  [[nodiscard]] std::uint32_t node_limit() const noexcept override;
  [[nodiscard]] std::uint32_t pe_limit() const noexcept override;
  [[nodiscard]] std::uint32_t node_capacity() const noexcept override { return node_limit(); }
  [[nodiscard]] node_state state(std::uint32_t node) const noexcept override;
  [[nodiscard]] std::pair<std::uint32_t, std::uint32_t> pes_of(std::uint32_t node) const override;
  [[nodiscard]] std::uint32_t pe_node(std::uint32_t pe) const noexcept override;
  [[nodiscard]] std::uint64_t gone_nodes() const noexcept override;
  [[nodiscard]] std::uint32_t machines() const noexcept override;
  [[nodiscard]] std::uint32_t machine_of(std::uint32_t node) const noexcept override;
  [[nodiscard]] world_state state() const noexcept override;
  [[nodiscard]] std::uint32_t epoch() const noexcept override;
  [[nodiscard]] bool is_open() const noexcept override { return false; }
  [[nodiscard]] result<wire::unique_ptr<membership_watch>> watch(membership_observer& observer) override;
  [[nodiscard]] result<memory_block> allocate(std::uint64_t bytes) override;
  void release(std::uint64_t offset) noexcept override;
  [[nodiscard]] result<std::span<std::byte>> map(std::uint32_t node, std::uint64_t offset,
                                                 std::uint64_t bytes) override;
  void unmap(std::uint32_t node) override;
  [[nodiscard]] doorbell& bell(std::uint32_t pe) noexcept override;
  [[nodiscard]] std::span<std::atomic<std::uint64_t>, counters_per_pe> counters(
      std::uint32_t pe) const noexcept override;
  /// This is for rings to other machines, where there are carriers.
  void publish_ring(std::uint32_t to, std::uint32_t from, std::uint64_t offset) noexcept override;
  [[nodiscard]] std::optional<std::uint64_t> ring_offset(std::uint32_t to, std::uint32_t from) const noexcept override;
  void begin_leave() noexcept override { leave(); }
  void leave() noexcept override;

 private:
  struct aligned_delete {
    void operator()(std::byte* p) const noexcept;
  };
  sim_universe& universe_;
  // by offset
  std::unordered_map<std::uint64_t, wire::unique_ptr<std::byte, aligned_delete>> blocks_;
};

}  // namespace orrery::transport
