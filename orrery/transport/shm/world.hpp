// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/transport/error.hpp>
#include <orrery/transport/shm/arena.hpp>
#include <orrery/transport/shm/numbers.hpp>
#include <orrery/transport/shm/peer.hpp>
#include <orrery/transport/shm/registry.hpp>
#include <orrery/transport/shm/segment.hpp>
#include <orrery/transport/wait.hpp>
#include <orrery/transport/world.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <atomic>
#include <cassert>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace orrery::transport {

class rendezvous;
class world_table;
struct world_address;

/// A copy of what the table says of a node, checked.
struct node_info {
  std::uint32_t node = no_node;
  node_state state = node_state::empty;
  peer_id id;
  std::uint32_t first_pe = 0;
  std::uint32_t pe_count = 0;
  std::uint32_t launcher = no_node;  ///< the node that started it; itself if nobody did
  std::uint64_t segment_bytes = 0;
  std::string program;
};

struct world_config {
  std::uint32_t pe_count = 1;      ///< PEs of each node
  std::uint32_t nodes = 1;  ///< this one and those that it will launch: numbers are reserved
  /// For a program that shows no vocabulary; must be the same in all nodes.
  std::uint64_t build_id = 0;
  /// The vocabulary of the program; null: its numbers are those of all nodes. Used while the world
  /// is made or joined.
  const vocabulary* words = nullptr;
  std::string program;  ///< for people; cut at 31 bytes
  std::uint64_t memory_limit = 0;  ///< bytes that may be in flight; 0: arena::default_limit()
  std::uint32_t places = 0;  ///< of nodes, and of PEs, that the world has at most; 0: max_places
  /// The world's name is for tools alone: it must be free, and nobody joins the world by it.
  bool closed = false;
  std::string rendezvous_dir;  ///< empty: $ORRERY_SHM_DIR, else /dev/shm
  /// How long create_or_join waits for others that hold the door, or have not noticed that a place
  /// is free.
  std::chrono::milliseconds patience{10'000};
};

// The world as the nodes of one machine share it.
//
// Problem: OS processes that come and go, and may be killed at any instruction, must agree on who
// is there, where everybody's memory is, and whom to wake, without a daemon, and leave nothing
// behind.
//
// So the first node makes a *world segment* with tables: nodes, PEs (doorbell, counters) and, for
// each ordered pair of PEs, where the ring between them lies. Each node makes a *node segment* for
// what it sends. Both are anonymous memory that is opened through /proc/<pid>/fd and goes with its
// last user. Places in the tables are used again (internal/place_giver.hpp), numbers are not
// (numbers.hpp), so what points to a PE that is gone never points to another.
//
// Ownership: one for each node, on the heap, outlives everything that uses its memory. The
// destructor leaves the world (and ends it if this is the first node).
// Thread safety: all calls may come from any thread, except that unmap(node) needs that nobody uses
// that node's memory.
//
// Invariants
//   I1  A number that was read from shared memory is checked before it is an index, an offset or a
//       length.
//   I2  Tables have memory (see segment::back) for all numbers below node_limit() and pe_limit().
//   I3  A node is alive only after its segment can be opened and its PEs are in the tables.
//   I4  Only a node itself, its launcher, and whoever saw its end change its entry.
//
// Glossary: *rendezvous* the file by which a named world is found; *epoch* counts changes of the
// membership; *kick* wakes the thread of a node that watches the membership.
//
//   world_config config{.pe_count = 2, .build_id = id, .program = "fft"};
//   auto world = shm_world::create_or_join("demo", config);
//   if (!world) return report(world.error());
//   auto ring = (*world)->memory().allocate(ring_header::bytes_for(65536));
//   ...
//   (*world)->publish_ring(to_pe, from_pe, ring->offset);
class shm_world final : public world {
 public:
  /// A world without a name: others come in only by being launched.
  [[nodiscard]] static result<wire::unique_ptr<shm_world>> create(const world_config& config);
  /// Joins the world whose segment is `fd`, under a number that was reserved; see launch.hpp. Takes
  /// `fd`.
  [[nodiscard]] static result<wire::unique_ptr<shm_world>> join_inherited(int fd, std::uint32_t node,
                                                                          const world_config& config);
  /// Joins the running world of that name and of this user, or makes it; exactly one of those that
  /// race makes it.
  [[nodiscard]] static result<wire::unique_ptr<shm_world>> create_or_join(std::string_view name,
                                                                          const world_config& config);
  shm_world(const shm_world&) = delete;
  ~shm_world() override;

  // This node.
  /// Nodes whose numbers config.nodes reserved, this one included: [node(), node() +
  /// reserved_nodes()).
  [[nodiscard]] std::uint32_t reserved_nodes() const noexcept { return reserved_nodes_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }  ///< empty: none
  [[nodiscard]] std::uint64_t nonce() const noexcept { return nonce_; }  ///< names this world only
  /// The numbers that the words of the program's vocabulary have in this world; empty: it has shown
  /// none.
  [[nodiscard]] const std::vector<std::uint32_t>& word_numbers() const noexcept { return word_numbers_; }

  // Everybody.
  [[nodiscard]] std::uint32_t node_limit() const noexcept override;
  [[nodiscard]] std::uint32_t pe_limit() const noexcept override;
  [[nodiscard]] std::uint32_t node_at(std::uint32_t place) const noexcept override;
  [[nodiscard]] std::uint32_t pe_at(std::uint32_t place) const noexcept override;
  [[nodiscard]] bool knows_node(std::uint32_t node) const noexcept override;
  [[nodiscard]] bool knows_pe(std::uint32_t pe) const noexcept override;
  [[nodiscard]] bool is_past_pe(std::uint32_t pe) const noexcept override;
  void acknowledge(std::uint32_t pe, std::uint64_t gone) noexcept override;
  [[nodiscard]] std::uint32_t take_alias(std::uint32_t pe) noexcept override;
  [[nodiscard]] std::uint32_t pe_of_alias(std::uint32_t alias) const noexcept override;
  [[nodiscard]] std::uint32_t node_capacity() const noexcept override { return max_nodes; }
  [[nodiscard]] node_info info(std::uint32_t node) const;
  [[nodiscard]] node_state state(std::uint32_t node) const noexcept override;
  [[nodiscard]] std::pair<std::uint32_t, std::uint32_t> pes_of(std::uint32_t node) const override;
  [[nodiscard]] std::uint32_t pe_node(std::uint32_t pe) const noexcept override;
  [[nodiscard]] std::uint64_t gone_nodes() const noexcept override;
  [[nodiscard]] std::uint32_t launch_of(std::uint32_t node) const noexcept override;
  [[nodiscard]] std::uint32_t machines() const noexcept override { return 1; }
  [[nodiscard]] std::uint32_t machine_of(std::uint32_t) const noexcept override { return 0; }
  [[nodiscard]] world_state state() const noexcept override;
  // one load of a line that is rarely written
  [[nodiscard]] std::uint32_t epoch() const noexcept override {
    return epoch_->load(std::memory_order_acquire);              // SYNC: with bump_epoch
  }
  [[nodiscard]] bool is_open() const noexcept override { return !name_.empty(); }
  /// A membership_monitor.
  [[nodiscard]] result<wire::unique_ptr<membership_watch>> watch(membership_observer& observer) override;
  /// Blocks the thread until epoch() != seen or until the deadline (CLOCK_MONOTONIC; -1: for ever).
  /// False: deadline.
  bool wait_epoch(std::uint32_t seen, std::int64_t deadline_ns) const noexcept;

  // Memory.
  /// The arena of what this node sends.
  [[nodiscard]] arena& memory() noexcept { return *arena_; }
  [[nodiscard]] result<memory_block> allocate(std::uint64_t bytes) override;
  [[nodiscard]] result<memory_block> allocate_beyond(std::uint64_t bytes) override;
  [[nodiscard]] result<memory_block> allocate_ring(std::uint64_t bytes) override;
  void release(std::uint64_t offset) noexcept override;
  /// The segment of a node (this one included). Maps it at the first call; fails with `gone` if the
  /// node ended before that.
  [[nodiscard]] result<std::span<std::byte>> map(std::uint32_t node);
  /// A range of a node's segment, checked against its size.
  [[nodiscard]] result<std::span<std::byte>> map(std::uint32_t node, std::uint64_t offset,
                                                 std::uint64_t bytes) override;
  /// Lets go of the memory of a node that is gone, which returns it to the system when all have.
  /// The result of map() is undefined afterwards.
  void unmap(std::uint32_t node) override;

  // PEs. `pe` is below pe_limit().
  [[nodiscard]] doorbell& bell(std::uint32_t pe) noexcept override { return bells_[place_of(pe)]; }
  [[nodiscard]] std::span<std::atomic<std::uint64_t>, counters_per_pe> counters(
      std::uint32_t pe) const noexcept override {
    return std::span<std::atomic<std::uint64_t>, counters_per_pe>{counters_ + place_of(pe) * counters_per_pe,
                                                                  counters_per_pe};
  }

  void publish_ring(std::uint32_t to, std::uint32_t from, std::uint64_t offset) noexcept override;
  /// Takes it back; `to` may have it mapped still.
  void withdraw_ring(std::uint32_t to, std::uint32_t from) noexcept;
  [[nodiscard]] std::optional<std::uint64_t> ring_offset(std::uint32_t to, std::uint32_t from) const noexcept override;

  /// Lets tools find a board of this node, which lives until this node has left. Once.
  void show_board(int fd) noexcept;

  // Ending.
  /// Others see `leaving`.
  void begin_leave() noexcept override;
  /// Its memory stays readable for those who have mapped it.
  void leave() noexcept override;
  /// Nobody can join any more, the name is free again, and every PE and every monitor is woken to
  /// see state(). Any node may do it.
  void end_world() noexcept;

  // For monitor and launcher.
  /// The number was used to start an OS process. False if it was not reserved.
  bool mark_started(std::uint32_t node, peer_id id) noexcept;
  /// True if this call changed it, false if it had left or was dead already. Nodes that it was to
  /// launch are dead, too.
  bool mark_dead(std::uint32_t node) noexcept;
  /// The first node is dead: removes the rendezvous file if it is this world's.
  void mark_lost() noexcept;
  /// This node's monitor has told of all nodes that were counted by `gone`.
  void acknowledge_node(std::uint64_t gone) noexcept;
  /// Readable after a kick; `clear_kicks` empties it.
  [[nodiscard]] int kick_fd() const noexcept { return kick_read_.get(); }
  void kick_self() noexcept;
  void clear_kicks() noexcept;
  [[nodiscard]] int world_fd() const noexcept { return world_.fd(); }
  [[nodiscard]] std::string program_of(std::uint32_t node) const override { return info(node).program; }
  [[nodiscard]] shm_world* shared() noexcept override { return this; }

 private:
  struct mapping;
  shm_world();

  [[nodiscard]] std::uint64_t lead_of(std::uint64_t bytes) const noexcept;
  [[nodiscard]] result<memory_block> shown(const result<arena::block>& block, std::uint64_t lead);

  [[nodiscard]] result<bool> go_in(rendezvous& door, std::string_view name, const world_config& config);
  [[nodiscard]] result<void> make_named(rendezvous& door, std::string_view name, const world_config& config);
  [[nodiscard]] result<void> make_world(std::string_view name, const world_config& config);
  [[nodiscard]] result<void> join_named(std::string_view name, const world_address& address,
                                        const world_config& config);
  [[nodiscard]] result<void> join_reserved(unique_fd world, std::uint32_t node, const world_config& config);
  [[nodiscard]] result<void> open_world(unique_fd world, std::string_view what, const world_config& config);
  [[nodiscard]] result<void> reserve(peer_id self, const world_config& config);
  [[nodiscard]] result<void> enter_words(const world_config& config);
  [[nodiscard]] std::optional<std::string> program_with(std::uint32_t vocabulary_place) const;
  [[nodiscard]] result<void> enter(std::uint32_t node, const world_config& config);
  [[nodiscard]] result<void> make_own_memory(std::uint32_t node, const world_config& config);
  void bind();
  [[nodiscard]] result<const mapping*> map_peer(std::uint32_t node);
  [[nodiscard]] const mapping* find_mapping(std::uint32_t node) noexcept;
  void bump_epoch() noexcept;
  void kick_others() noexcept;
  void kick(std::uint32_t node) noexcept;

  segment world_;  // the world's; the fd is kept by the first node and by those it launched
  wire::unique_ptr<world_table> table_;
  segment own_;
  wire::unique_ptr<arena> arena_;
  wire::unique_ptr<rendezvous> door_;  // open file of a named world
  unique_fd kick_read_;
  unique_fd kick_write_;

  const std::atomic<std::uint32_t>* epoch_ = nullptr;
  doorbell* bells_ = nullptr;
  std::atomic<std::uint64_t>* counters_ = nullptr;
  std::uint32_t reserved_nodes_ = 0;
  std::uint32_t vocabulary_place_ = no_vocabulary;
  std::vector<std::uint32_t> word_numbers_;
  std::uint64_t nonce_ = 0;
  std::string name_;
  std::string directory_;
  std::atomic<bool> left_{true};  // true until this node is alive
  bool may_join_later_ = false;

  std::mutex door_mutex_;
  std::mutex map_mutex_;
  /// The first node at a place whose memory is mapped; those of others at that place are in
  /// `more_mappings_`.
  struct mapping_slot {
    std::atomic<std::uint32_t> node{no_node};
    std::atomic<const mapping*> memory{nullptr};
  };
  wire::unique_ptr<mapping_slot[]> mappings_;  // max_nodes of them
  // by node; under map_mutex_
  std::unordered_map<std::uint32_t, wire::unique_ptr<const mapping>> more_mappings_;
};

}  // namespace orrery::transport
