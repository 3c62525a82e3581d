// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/pe.hpp>
#include <orrery/scheduler/stage_counts.hpp>
#include <orrery/transport/world.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace orrery::transport {
class world;
class membership_watch;
}  // namespace orrery::transport

namespace orrery::scheduler {

class io_pool;
class simulator;

/// The hooks of the layer above for the PEs of a node. It outlives the node.
class process_layer {
 public:
  virtual ~process_layer() = default;
  /// Makes the processes that every PE has. Called for each PE before any of them runs.
  virtual void prepare(pe& at) = 0;
  /// Nodes may have come or gone. On the PE's thread, between methods: it does not park.
  virtual void membership_changed(pe& at) noexcept = 0;
  /// A process that is `named` ends; its destructor comes next. Called in that process: it may
  /// park.
  virtual void before_end(pe& at, slot& s) noexcept = 0;
  /// The same for a process that was never complete; it is gone, and nothing may park.
  virtual void after_end(pe& at, address gone) noexcept = 0;
};

/// How a node is started.
struct node_settings {
  process_layer* layer = nullptr;
  std::uint32_t pes = 0;  ///< 0: as many as there are cores
  pe_settings pe;
  /// The node that started this one, which leaves the world, or is lost, with it.
  std::uint32_t launcher = transport::no_node;
  /// The program that started the nodes says which ones fail while the world ends.
  bool ends_are_reported = true;
  bool pin = true;  ///< bind each PE to a core, when there are enough for the whole world
  /// The limit of all its mailboxes together; 0: a share of the machine's memory.
  std::uint64_t queue_bytes = 0;
  std::int64_t stuck_ns = 0;  ///< after which a PE that waits inside a method is reported; 0: never
};

/// Cores that this OS process may use.
[[nodiscard]] std::uint32_t available_cores() noexcept;

/// One OS process of the world: its PEs and what they share. Made by the runtime, lives for one
/// run. Without a world it is alone: PEs are threads and nothing is shared. The functions are
/// called by the node's PEs, from any of their threads, unless said otherwise.
class node {
 public:
  /// `world` may be null and outlives the node.
  node(const node_settings& settings, transport::world* world);
  node(const node&) = delete;
  node& operator=(const node&) = delete;
  ~node();

  [[nodiscard]] std::uint32_t index() const noexcept;  ///< of this node in its world
  [[nodiscard]] std::uint32_t first_pe() const noexcept { return first_pe_; }
  [[nodiscard]] std::uint32_t pe_count() const noexcept { return static_cast<std::uint32_t>(pes_.size()); }
  [[nodiscard]] bool is_local(std::uint32_t pe) const noexcept { return pe - first_pe_ < pes_.size(); }
  [[nodiscard]] pe& local(std::uint32_t pe) noexcept { return *pes_[pe - first_pe_]; }
  [[nodiscard]] transport::world* world() const noexcept { return world_; }
  [[nodiscard]] process_layer* layer() const noexcept { return settings_.layer; }

  // The world as this node sees it. Places of PEs and nodes given out so far: what is there may be
  // gone.
  [[nodiscard]] std::uint32_t world_pes() const noexcept;
  [[nodiscard]] std::uint32_t world_nodes() const noexcept;
  /// The number of the last PE at a place below world_pes(), or node; 0xffffffff if there was none.
  [[nodiscard]] std::uint32_t pe_at(std::uint32_t place) const noexcept;
  [[nodiscard]] std::uint32_t node_at(std::uint32_t place) const noexcept;
  /// The number was given out: the PE is there, or is gone.
  [[nodiscard]] bool knows(std::uint32_t pe) const noexcept;
  /// PEs of a node: first and count. Throws usage_error if there is no such node.
  [[nodiscard]] std::pair<std::uint32_t, std::uint32_t> pes_of(std::uint32_t node) const;
  /// Messages to the PE are read there, also while its node is leaving.
  [[nodiscard]] bool reachable(std::uint32_t pe) const noexcept;
  /// Its node was there and has ended: nothing that is sent to it or from it is on the way.
  [[nodiscard]] bool has_ended(std::uint32_t pe) const noexcept;
  /// It is reachable, and its node is not about to leave: a place for new processes.
  [[nodiscard]] bool takes_work(std::uint32_t pe) const noexcept;
  /// Also of a PE that is gone, as long as nobody else has its place; then no_node.
  [[nodiscard]] std::uint32_t node_of(std::uint32_t pe) const noexcept;
  [[nodiscard]] bool world_runs() const noexcept;  ///< nobody has ended it
  /// A number that differs at each call: to take places in turn.
  [[nodiscard]] std::uint32_t turn() noexcept { return turn_.fetch_add(1, std::memory_order_relaxed); }

  /// The steps before and after the running of the PEs. For run() and the simulator, which runs
  /// them itself.
  void begin();
  void finish() noexcept;
  /// Runs the PEs until stop(); the first one on the calling thread. `first` is called there before
  /// its loop begins.
  void run(const std::function<void(pe&)>& first);
  /// Makes run() return, from any thread.
  void stop() noexcept;

  [[nodiscard]] bool shares_memory() const noexcept { return world_ != nullptr; }
  [[nodiscard]] bool has_reentrant() const noexcept { return reentrant_.load(std::memory_order_relaxed); }
  void set_reentrant() noexcept { reentrant_.store(true, std::memory_order_relaxed); }
  /// Bytes that the mailboxes may hold together.
  [[nodiscard]] std::uint64_t queue_limit() const noexcept { return settings_.queue_bytes; }
  /// One-way messages of this node's PEs that have failed. After run().
  [[nodiscard]] std::uint64_t failed_posts() const noexcept;

  /// Other threads of the node have work for the world: it is not dead if it only waits. Called by
  /// any thread.
  void begin_outside() noexcept;
  void end_outside() noexcept;

  // Quiescence; quiescence_detector.cpp.
  [[nodiscard]] idleness& idleness_of(std::uint32_t pe) noexcept;
  /// Nothing unless all PEs are idle and nothing is on its way.
  [[nodiscard]] std::optional<idle_world> world_if_idle() noexcept;
  /// Nodes that have left the world or were lost.
  [[nodiscard]] std::uint64_t gone_nodes() const noexcept;
  /// True on the node whose main function keeps a closed world alive.
  [[nodiscard]] bool ends_when_dead() const noexcept;
  void end_dead(const std::string& waits) noexcept;
  /// Whether this node has said on stderr that the other one is lost.
  [[nodiscard]] bool has_announced(std::uint32_t n) const noexcept {
    return announced_ != nullptr && announced_[n % world_->node_capacity()].load(std::memory_order_relaxed) == n + 1;
  }
  [[nodiscard]] bool is_dead() const noexcept { return dead_.load(std::memory_order_relaxed); }

  // For PEs.
  wire::unique_ptr<outbound> connect(pe& from, std::uint32_t to);
  /// Adds the rings that PEs of other nodes have made into `to`.
  void adopt_remote(pe& to, std::vector<wire::unique_ptr<inbound>>& rings);
  /// Frees the memory of a lost outbound ring of PE `from`, and the blocks that `from` had sent
  /// over it, once the receiver's node has ended; before, nothing happens. On the thread of `from`,
  /// which therefore is not writing there.
  void give_back(outbound& c, std::uint32_t from) noexcept;
  /// An inbound ring or block of a PE of another node is not used any more.
  void let_go(std::uint32_t source_pe) noexcept;
  void wake(std::uint32_t pe) noexcept;
  /// How far its PEs have come in shutting down.
  [[nodiscard]] stage_counts& stages() noexcept { return stages_; }
  void announce(pe& to) noexcept;  ///< there is news for it: rings, nodes, errands
  void announce_elsewhere(std::uint32_t pe) noexcept;  ///< the same to a PE of another node
  void peer_corrupt(std::uint32_t pe, const char* what) noexcept;
  /// The memory of the PE's node cannot be mapped, for the reason that is said.
  void peer_unreadable(std::uint32_t pe, const std::string& why) noexcept;
  /// There is no memory for a ring to the PE, which waits for what would be said there, for the
  /// reason that is said.
  void peer_without_ring(std::uint32_t pe, const std::string& why) noexcept;
  /// The PE's node treats this one as lost.
  void refused_by(std::uint32_t pe) noexcept;
  /// An outbound ring over which a PE of a node that is not trusted can still be told so; null if
  /// there is nobody to tell.
  wire::unique_ptr<outbound> connect_to_refused(pe& from, std::uint32_t to);
  /// The PE's node lives, but is treated as lost.
  [[nodiscard]] bool is_refused(std::uint32_t pe) const noexcept;

  // Payload blocks.
  /// Memory of PE `from` for a payload that PE `to` will read in place; `offset` names it. Null:
  /// none is free just now. Throws world_error if it never will.
  std::byte* allocate_block(std::uint32_t from, std::uint32_t to, std::size_t bytes, std::uint64_t& offset,
                            bool beyond_limit = false);
  /// The PE has read the block, or will not get it.
  void block_released(std::uint32_t by_pe, std::uint64_t offset) noexcept;
  /// A block of another node, checked; null if it is not inside of that node's memory.
  [[nodiscard]] std::byte* block(std::uint32_t source_pe, const wire::block_ref& ref) noexcept;
  /// A block of that PE's node is in use here until let_go.
  void hold(std::uint32_t source_pe) noexcept;

  /// The threads that do I/O where io_uring is not to be had.
  [[nodiscard]] io_pool& io_helpers() noexcept { return *io_pool_; }

 private:
  friend class simulator;
  class observer;
  wire::unique_ptr<outbound> connect_local(pe& from, std::uint32_t to);
  wire::unique_ptr<outbound> connect_remote(pe& from, std::uint32_t to);
  wire::unique_ptr<inbound> open_ring(std::uint32_t from, std::uint32_t to, std::uint64_t offset);
  wire::unique_ptr<inbound> map_ring(std::uint32_t from, std::uint32_t to, std::uint64_t offset);
  /// The node of a PE whose memory is in use here, whatever the table of PEs says now.
  [[nodiscard]] std::uint32_t sender_node(std::uint32_t pe) noexcept;
  void tell_pes() noexcept;
  void free_blocks(std::uint32_t from, std::uint32_t to) noexcept;
  [[nodiscard]] bool is_distrusted(std::uint32_t n) const noexcept {
    return distrusted_ != nullptr && distrusted_[n % world_->node_capacity()].load(std::memory_order_relaxed) == n + 1;
  }
  /// False if it was not trusted before.
  bool distrust(std::uint32_t n) noexcept {
    return distrusted_ == nullptr || distrusted_[n % world_->node_capacity()].exchange(n + 1) == n + 1;
  }
  void forget_memory_of(std::uint32_t node) noexcept;

  node_settings settings_;
  transport::world* world_;
  simulator* sim_ = nullptr;
  std::uint32_t first_pe_ = 0;
  wire::unique_ptr<transport::doorbell[]> own_bells_;  // when there is no world
  wire::unique_ptr<idleness[]> own_idleness_;
  wire::unique_ptr<io_pool> io_pool_;
  std::vector<wire::unique_ptr<pe>> pes_;
  std::atomic<bool> reentrant_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<std::uint32_t> turn_{0};
  std::atomic<bool> dead_{false};
  stage_counts stages_;

  std::mutex mutex_;  // of what follows
  std::vector<std::pair<void*, std::size_t>> local_rings_;
  struct block_use {
    std::uint32_t from;  // the PE that writes it
    std::uint32_t to;  // the PE that reads it
  };
  std::unordered_map<std::uint64_t, block_use> blocks_;  // by offset
  std::atomic<std::uint32_t> allocating_{0};  // threads that ask for one
  struct sender {
    // as it was when the first of its rings was opened: others can write the table of PEs
    std::uint32_t node;
    std::uint32_t uses;
  };
  // PEs of other nodes whose rings and blocks are in use here
  std::unordered_map<std::uint32_t, sender> senders_;
  // node -> rings and blocks of it in use here
  std::unordered_map<std::uint32_t, std::uint32_t> segment_use_;
  // By place: the last node there that sent nonsense, or whose loss was said on stderr; its number
  // + 1.
  wire::unique_ptr<std::atomic<std::uint32_t>[]> distrusted_;
  wire::unique_ptr<std::atomic<std::uint32_t>[]> announced_;

  wire::unique_ptr<observer> observer_;
  wire::unique_ptr<transport::membership_watch> watch_;
};

}  // namespace orrery::scheduler
