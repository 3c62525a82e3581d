// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/transport/error.hpp>
#include <orrery/transport/mpi/carrier.hpp>
#include <orrery/transport/mpi/cluster.hpp>
#include <orrery/transport/mpi/helper_pace.hpp>
#include <orrery/transport/mpi/late_engine.hpp>
#include <orrery/transport/mpi/launcher.hpp>
#include <orrery/transport/mpi/library.hpp>
#include <orrery/transport/mpi/socket_watch.hpp>
#include <orrery/transport/mpi/status_server.hpp>
#include <orrery/transport/shm/world.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

namespace orrery::transport {

struct mpi_config {
  world_config node;  ///< pe_count 0: by the cores; `nodes` is not looked at
  std::uint64_t ring_bytes = std::uint64_t{1} << 30;  ///< none of this node's rings is larger
  std::string library;  ///< path; empty: the one of the launcher
  std::uint64_t piece = cluster_map::usual_piece;  ///< for tests: the parts in which blocks travel
  std::string name;  ///< by which tools find the world, on each machine; empty: none
  bool traced = false;  ///< nodes will bring their parts of a trace to the first one
  /// So many ranks are taken for one machine; 0: those of one host.
  std::uint32_t machine_ranks = 0;
  std::chrono::nanoseconds jitter{};  ///< for tests: what comes from others is late by up to that
  std::chrono::nanoseconds startup =
      std::chrono::seconds(30);  ///< a start that takes longer is said; ten times that ends
  /// A node that is silent for so long is lost.
  std::chrono::nanoseconds patience = std::chrono::seconds(5);
};

/// A world of several machines. Each rank of an MPI program is a node.
///
/// Problem: nodes of one machine share memory, and nodes of two do not; above this layer nobody is
/// to see the difference. So the nodes of each machine share a `shm_world` of their own, in which
/// they have other numbers, and a carrier moves between machines what would lie in shared memory:
/// rings, blocks, counters, news of who is there.
///
/// Owned by the runtime; one for each OS process, as MPI starts once. A helper thread drives the
/// carrier while all PEs sleep or compute, and tells the observer who has come to an end.
/// Thread-safe as `world` says.
///
/// The first node of each machine tells tools of all machines (status_server).
///
/// Not to be had across machines yet: places that are given out again, and nodes that join by the
/// world's name.
class mpi_world final : public transport::world {
 public:
  /// Blocks until all ranks have come. Fails on all of them if it fails on one.
  [[nodiscard]] static result<wire::unique_ptr<mpi_world>> start(const mpi_launch& launch, const mpi_config& config);
  ~mpi_world() override;

  [[nodiscard]] std::uint32_t node_limit() const noexcept override { return map_->nodes(); }
  [[nodiscard]] std::uint32_t pe_limit() const noexcept override { return map_->pes(); }
  [[nodiscard]] std::uint32_t node_capacity() const noexcept override { return map_->nodes(); }
  [[nodiscard]] node_state state(std::uint32_t node) const noexcept override {
    return node < map_->nodes() ? members_->state(node) : node_state::empty;
  }
  [[nodiscard]] std::pair<std::uint32_t, std::uint32_t> pes_of(std::uint32_t node) const override {
    return {map_->at(node).first_pe, map_->at(node).pe_count};
  }
  [[nodiscard]] std::uint32_t pe_node(std::uint32_t pe) const noexcept override { return map_->node_of(pe); }
  [[nodiscard]] std::uint64_t gone_nodes() const noexcept override { return members_->gone(); }
  [[nodiscard]] std::uint32_t machines() const noexcept override { return machines_; }
  [[nodiscard]] std::uint32_t machine_of(std::uint32_t node) const noexcept override { return map_->at(node).machine; }
  [[nodiscard]] std::string host_of(std::uint32_t machine) const override { return hosts_[machine]; }
  [[nodiscard]] std::string program_of(std::uint32_t node) const override {
    return node < programs_.size() ? programs_[node].name : std::string{};
  }
  [[nodiscard]] std::chrono::nanoseconds patience() const noexcept override { return patience_; }
  [[nodiscard]] world_state state() const noexcept override { return members_->world(); }
  [[nodiscard]] std::uint32_t epoch() const noexcept override { return members_->epoch(); }
  [[nodiscard]] bool is_open() const noexcept override { return false; }
  [[nodiscard]] bool has_other_programs() const noexcept override { return other_programs_; }
  [[nodiscard]] std::uint32_t launch_of(std::uint32_t node) const noexcept override {
    return node < programs_.size() ? programs_[node].first : no_node;
  }
  [[nodiscard]] result<wire::unique_ptr<membership_watch>> watch(membership_observer& observer) override;
  [[nodiscard]] std::pair<std::uint32_t, std::uint32_t> crowd() const noexcept override { return crowd_; }
  [[nodiscard]] transport::carrier* carrier() noexcept override { return carrier_.get(); }

  [[nodiscard]] result<memory_block> allocate(std::uint64_t bytes) override { return local_->allocate(bytes); }
  [[nodiscard]] result<memory_block> allocate_beyond(std::uint64_t bytes) override {
    return local_->allocate_beyond(bytes);
  }
  [[nodiscard]] result<memory_block> allocate_ring(std::uint64_t bytes) override {
    return local_->allocate_ring(bytes);
  }
  void release(std::uint64_t offset) noexcept override;
  [[nodiscard]] result<std::span<std::byte>> map(std::uint32_t node, std::uint64_t offset,
                                                 std::uint64_t bytes) override;
  void unmap(std::uint32_t node) override;

  [[nodiscard]] doorbell& bell(std::uint32_t pe) noexcept override;
  [[nodiscard]] std::span<std::atomic<std::uint64_t>, counters_per_pe> counters(
      std::uint32_t pe) const noexcept override;
  void publish_ring(std::uint32_t to, std::uint32_t from, std::uint64_t offset) noexcept override;
  [[nodiscard]] std::optional<std::uint64_t> ring_offset(std::uint32_t to, std::uint32_t from) const noexcept override;

  void begin_leave() noexcept override;
  /// Waits for the other nodes, as MPI ends for all at once. If one was lost, this OS process will
  /// end without the library's clean-up, which would wait for it.
  void leave() noexcept override;

  // A file of which each node makes a part: the trace of the world. `traced` was set.
  /// Names this world only.
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
  /// Nanoseconds to be added to the clock of this machine (CLOCK_MONOTONIC) for that of the first
  /// node's.
  [[nodiscard]] std::int64_t clock_offset() const noexcept { return clock_offset_of(node_); }
  /// Its machine is not the first node's: files that it writes are elsewhere.
  [[nodiscard]] bool is_far_from_first() const noexcept { return map_->is_far(0); }
  /// On the first node, until it is called again without a function: what other nodes bring, in
  /// order for each node. Called by any thread, one at a time.
  void take_parts(mpi_carrier::part_sink sink) noexcept { carrier_->take_parts(std::move(sink)); }
  /// On another node: leave() brings what `part` writes into the memory that it is given, until
  /// that is nothing.
  using part_source = std::function<std::size_t(std::span<std::byte>)>;
  void bring_part(part_source part) noexcept { part_ = std::move(part); }

  /// The numbers of the program's vocabulary in this world.
  [[nodiscard]] const std::vector<std::uint32_t>& word_numbers() const noexcept {
    return word_numbers_.empty() ? local_->word_numbers() : word_numbers_;
  }

 private:
  class local_observer;
  class watcher;
  mpi_world();
  [[nodiscard]] result<void> meet(const mpi_config& config);
  [[nodiscard]] result<void> share_memory(const mpi_config& config, std::vector<cluster_map::place> places,
                                          const std::string& name);
  struct program_of_rank {
    std::string name;
    std::uint64_t vocabulary;
  };
  [[nodiscard]] result<void> number_words(const vocabulary& own, const std::vector<program_of_rank>& programs);
  [[nodiscard]] result<void> agree(const result<void>& own);
  [[nodiscard]] result<void> begin(const mpi_config& config);
  [[nodiscard]] result<void> compare_clocks(std::span<const std::uint64_t> hosts);
  [[nodiscard]] result<void> watch_machine();
  void tell_tools();
  [[nodiscard]] cluster_status find_status(bool names);
  /// 0 if clocks were not compared.
  [[nodiscard]] std::int64_t clock_offset_of(std::uint32_t node) const noexcept {
    return clock_offsets_.empty() ? 0 : clock_offsets_[node];
  }
  void help();
  [[nodiscard]] socket_watch::cause rest(const helper_pace::pause& p, bool asleep, std::uint32_t told) noexcept;
  void stop_helping() noexcept;
  void say_who_stays(std::int64_t waited_ns) const noexcept;

  wire::unique_ptr<mpi_library> library_;
  wire::unique_ptr<late_engine> late_;  // for tests: before the library
  wire::unique_ptr<shm_world> local_;
  std::vector<std::uint32_t> word_numbers_;  // if there are several programs
  wire::unique_ptr<cluster_map> map_;
  wire::unique_ptr<cluster_members> members_;
  wire::unique_ptr<mpi_carrier> carrier_;
  std::uint32_t machines_ = 1;
  std::vector<std::string> hosts_;  // by machine
  std::chrono::nanoseconds patience_{};
  std::uint64_t number_ = 0;
  struct program_here {
    std::string name;
    std::int32_t pid;
    std::uint32_t first;  // node that runs the same program
  };
  std::vector<program_here> programs_;  // of the nodes
  bool other_programs_ = false;
  std::vector<std::int64_t> clock_offsets_;  // of the nodes; empty: nobody needs them
  bool traced_ = false;
  part_source part_;
  std::pair<std::uint32_t, std::uint32_t> crowd_{1, 1};
  doorbell no_bell_;  // of PEs of other machines: they never sleep, as far as senders see

  std::mutex rings_mutex_;
  std::unordered_set<std::uint64_t> far_rings_;  // offsets

  std::mutex observer_mutex_;
  membership_observer* observer_ = nullptr;
  wire::unique_ptr<local_observer> local_observer_;
  wire::unique_ptr<membership_watch> local_watch_;
  wire::unique_ptr<status_server> status_server_;
  socket_watch sockets_;
  std::thread helper_;
  std::atomic<bool> helps_{false};
  std::atomic<bool> leaving_{false};
  std::atomic<bool> left_{true};
  bool keeps_memory_ = false;  // the library may still write there, so it stays when this is gone
};

}  // namespace orrery::transport
