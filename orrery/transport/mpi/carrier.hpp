// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/transport/carrier.hpp>
#include <orrery/transport/mpi/cluster.hpp>
#include <orrery/transport/mpi/engine.hpp>
#include <orrery/transport/mpi/frame.hpp>
#include <orrery/transport/mpi/late_wakes.hpp>
#include <orrery/transport/mpi/mirror_ring.hpp>
#include <orrery/transport/mpi/outgoing_ring.hpp>
#include <orrery/transport/mpi/ring_sizes.hpp>
#include <orrery/transport/mpi/slow_memory.hpp>
#include <orrery/transport/mpi/socket_watch.hpp>
#include <orrery/transport/wait.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace orrery::transport {

class shm_world;

/// The news of one node about another.
enum class node_news : std::uint64_t {
  here = 1,     ///< nothing but that the sender runs; with the flag: a debugger holds it
  leaving = 2,  ///< it takes no new work
  left = 3,     ///< it reads and sends nothing more
  suspect = 4,  ///< to the first node: it seems to be lost; with the flag: it is silent
};

/// The carrier over a message library.
///
/// Problem: PEs of two machines talk to each other through rings, and no memory is shared.
/// Thousands of small records are to share the cost of a message, nobody may have to wait for who
/// does not read, and order, capacity and counts of rings must hold from end to end.
///
/// So between two such PEs lie two rings of one size: the sender's (outgoing_ring), and the
/// receiver's (mirror_ring), which has the same bytes at the same positions. Bytes between the two
/// are in frames on their way. The receiver's position comes back as credit, so what a frame brings
/// always has room. Payloads in blocks follow their records as messages of their own, straight from
/// the sender's memory into the receiver's.
///
/// Threads: any PE drives, and the world's helper while they sleep; one at a time, under the lock,
/// as the library wants it.
///
/// The first node alone decides which nodes are lost: an *eviction*. It hears of all suspicions,
/// and of each node that is silent. Evictions are numbered. A node that has heard of one tells each
/// other node of it before anything else.
///
/// Invariants
///   I1  For each ring: written by the PE >= taken into frames >= filled here >= shown >= released
///       by the reader >= credit at the sender.
///   I2  A frame of a node that has left or was evicted is not looked at.
///   I3  The evictions that a node knows are the first ones of those that the first node has
///       decided.
///   I4  A node that looks at a frame knows all evictions that its sender knew: nobody acts on what
///       followed from an eviction, and then on what the evicted node says. Each frame says how
///       many those are; one that says less than an earlier frame of its sender, or more than the
///       sender has told, is refused.
///   I5  To a node that is not active nothing is to be sent, and nothing is on its way.
///   I6  Memory of a receive that the library has not ended is not used for anything else: that of
///       a block whose sender is gone is never given back.
class mpi_carrier final : public carrier, private outgoing_ring::user {
 public:
  using clock = std::function<std::int64_t()>;
  using memory_source = std::function<result<world::memory_block>(std::uint64_t bytes)>;
  /// `fatal` is called, under the lock, with a line for people when this node must end; it does not
  /// return but in tests. `patience_ns`: a node that is silent for so long is lost. `time`:
  /// nanoseconds that only grow. `memory`: where blocks of other machines go; by default `local`.
  mpi_carrier(engine& by, shm_world& local, const cluster_map& map, cluster_members& members, std::int64_t patience_ns,
              std::function<void(const std::string&)> fatal, clock time = real_now_ns, memory_source memory = {});
  ~mpi_carrier() override;

  /// Begins to receive. Before any other node may send.
  [[nodiscard]] bool begin();

  bool drive() noexcept override;
  void poll(bool busy) noexcept override;
  [[nodiscard]] std::uint64_t next_ring_bytes(std::uint64_t wanted) noexcept override {
    return ring_sizes_.next(std::min(wanted, map_.at(map_.own()).ring));
  }
  [[nodiscard]] bool needs(std::uint32_t pe) noexcept override;
  /// Parts of blocks are in the library, and were begun or have ended a short time ago.
  [[nodiscard]] bool moves_blocks() const noexcept { return moves_blocks_.load(std::memory_order_relaxed); }
  std::uint64_t ask_for_counters() noexcept override;
  [[nodiscard]] std::uint64_t counters_round() const noexcept override {
    return answered_.load(std::memory_order_acquire);  // SYNC: with receive_counters
  }

  /// The same as drive(), and what is due now and then: signs of life, credit that nobody waits
  /// for, looks at who is silent. True if something came or went.
  bool tick() noexcept;
  /// How this node finds out whether a debugger holds it; it asks twice between two signs of life.
  /// It says so to those that watch it: they do not miss it, however long it is silent.
  void look_for_debugger(std::function<bool()> is_debugged) noexcept;
  /// Whether this node sends signs of life and misses nodes that are silent, from now on. It does
  /// from the start.
  void miss_silent(bool on) noexcept;
  /// How many other nodes drive() looks at: those to which something may have to be sent.
  [[nodiscard]] std::size_t active_nodes() noexcept;
  /// All that was to be sent has been taken by the library.
  [[nodiscard]] bool is_flushed() noexcept;
  /// The same, and nothing that has begun to come is missing: only what others begin can make work
  /// here.
  [[nodiscard]] bool is_calm() noexcept;
  /// Frames that have come from other machines.
  [[nodiscard]] std::uint64_t frames_from_far() const noexcept { return far_frames_.load(std::memory_order_relaxed); }
  /// How often PEs have driven the carrier.
  [[nodiscard]] std::uint64_t drives() const noexcept { return drives_.load(std::memory_order_relaxed); }
  /// The helper is about to sleep there until the next PE wakes; null: it is awake.
  void let_helper_sleep(socket_watch* at) noexcept { helper_.store(at, std::memory_order_relaxed); }
  /// The helper is about to nap there, until all PEs sleep; null: it is awake.
  void let_helper_nap(socket_watch* at) noexcept { napping_.store(at, std::memory_order_relaxed); }
  /// All PEs of this node have said that they sleep.
  [[nodiscard]] bool all_pes_sleep() noexcept;
  void pe_sleeps() noexcept override;
  void pe_woke() noexcept override;
  void reclaim_rings(std::uint32_t pe) noexcept override;
  /// Receives nothing more. The last call. False if the library may still write into memory of this
  /// node, which has to stay then.
  [[nodiscard]] bool end() noexcept;

  /// A ring of a PE of this node to one of another machine.
  void add_ring(std::uint32_t from, std::uint32_t to, std::uint64_t offset, ring_header& header);
  /// Memory of this node is released: if a ring was there, nothing is taken from it any more.
  void forget_ring(std::uint64_t offset) noexcept;
  /// Where the mirror of such a ring lies in this node's memory.
  [[nodiscard]] std::optional<std::uint64_t> mirror_offset(std::uint32_t to, std::uint32_t from) const noexcept;
  /// The node has ended and nobody here reads what it has sent.
  void release_memory_of(std::uint32_t node) noexcept;
  [[nodiscard]] std::span<std::atomic<std::uint64_t>, counters_per_pe> copy_of_counters(std::uint32_t pe) noexcept {
    return std::span<std::atomic<std::uint64_t>, counters_per_pe>{copies_[pe].words, counters_per_pe};
  }

  void show_names(names_source source) noexcept override;
  /// Asks all other nodes for names and counters. When counters_round() has reached the number that
  /// this returns, names_of() has what they have said.
  std::uint64_t ask_for_names() noexcept;
  [[nodiscard]] std::vector<std::byte> names_of(std::uint32_t node);
  static constexpr std::size_t largest_names = 1 << 20;

  /// Tells all nodes what becomes of this one.
  void say(node_news news) noexcept;
  /// The last counters of this node's PEs for the first node.
  void say_counters() noexcept;
  /// At most `largest_part` bytes of this node's part of a file, for the first node.
  void send_part(std::span<const std::byte> bytes) noexcept;
  static constexpr std::size_t largest_part = 48 << 10;
  /// On the first node: called, under the lock, with what other nodes send by send_part, in its
  /// order. Without it that is refused.
  using part_sink = std::function<void(std::uint32_t node, std::span<const std::byte> bytes)>;
  void take_parts(part_sink sink) noexcept;
  /// The OS process of a node of this machine has ended.
  void report_lost(std::uint32_t node, std::string_view how) noexcept;
  /// How many evictions this node knows.
  [[nodiscard]] std::uint64_t evictions() const noexcept {
    return evictions_known_.load(std::memory_order_relaxed);  // a count for people and tests
  }

 private:
  struct alignas(64) counter_copy {
    std::atomic<std::uint64_t> words[counters_per_pe];
  };
  struct sent_frame {
    engine::request request;
    frame memory;
  };
  struct control {
    section head;
    std::vector<std::byte> payload;
  };
  /// A part of a block that comes or goes.
  struct piece {
    engine::request request;
    std::uint64_t bytes;
  };
  struct waiting_piece {
    int tag;
    std::span<const std::byte> data;
  };
  /// Another node.
  struct peer {
    std::uint32_t node = 0;
    bool far = false;
    bool closed = false;  // it is lost: nothing is sent to it, nothing of it is looked at
    bool left = false;  // it sends nothing more, and hears only when this node leaves, too
    bool watched = false;  // it and this node send each other signs of life
    bool active = false;
    bool debugged = false;  // it has said so: it may be silent
    bool suspected = false;  // the first node was told, of more than silence
    // it has sent what cannot be, and is not listened to until the first node has decided
    bool damaged = false;
    std::vector<wire::unique_ptr<outgoing_ring>> rings;
    std::vector<wire::unique_ptr<mirror_ring>> mirrors;
    std::deque<control> controls;
    std::list<sent_frame> frames;  // on their way
    std::deque<waiting_piece> pieces;  // of blocks, that wait for those on their way
    std::deque<piece> blocks;  // pieces on their way
    std::uint64_t block_bytes = 0;  // of those
    std::uint64_t tags = 0;
    std::size_t told = 0;  // so many evictions
    std::uint64_t epoch = 0;  // of its last frame: so many it has told
    std::int64_t said_ns = 0;
    std::int64_t heard_ns = 0;
    std::int64_t missed_ns = 0;  // the first node was told that it is silent
    std::int64_t debugged_until_ns = 0;  // as it has said; while it is not debugged
    std::size_t turn = 0;  // of its rings
    std::vector<std::byte> names;  // that it has told
    std::vector<std::byte> coming_names;  // that it is telling
  };
  /// A block that comes.
  struct arrival {
    std::uint64_t number;
    std::uint32_t node;
    mirror_ring* into;
    std::uint64_t position;
    wire::block_ref there;  // at its sender
    int tag;
    std::int64_t since_ns;
    std::optional<std::uint64_t> offset;  // of its memory, once there is some
    std::span<std::byte> awaited;  // memory of pieces that are not asked for yet
    std::deque<piece> pieces;  // that are
  };
  struct eviction {
    std::uint32_t node;
    std::string how;
  };
  /// The fault of something that came, as a clause that follows "it has sent"; empty: nothing.
  using fault = std::string;
  /// A block of another node in this node's memory.
  struct guest_block {
    std::uint32_t node;
    std::uint64_t offset;  // at its sender
  };

  void wake(late_wakes::wake w);
  /// And wakes whom wake_later has named.
  void unlock(std::unique_lock<std::mutex>& lock);

  // Under the lock, all of them.
  bool work(bool everything, bool busy = false);
  bool send_to_all(bool everything, bool looks);
  bool receive(bool everything);
  void receive_frame(std::uint32_t node, std::span<const std::byte> bytes);
  [[nodiscard]] fault check_epoch(const peer& from, std::uint64_t epoch, bool tells) const;
  [[nodiscard]] fault receive_section(peer& from, const frame_reader::item& item);
  [[nodiscard]] fault receive_open(peer& from, const section& s);
  [[nodiscard]] fault receive_records(peer& from, const frame_reader::item& item);
  [[nodiscard]] fault receive_block(peer& from, const frame_reader::item& item);
  [[nodiscard]] fault receive_credit(peer& from, const section& s);
  [[nodiscard]] fault receive_state(peer& from, const frame_reader::item& item);
  [[nodiscard]] fault receive_counters(peer& from, const frame_reader::item& item);
  [[nodiscard]] fault receive_eviction(peer& from, const frame_reader::item& item);
  [[nodiscard]] fault receive_part(peer& from, const frame_reader::item& item);
  [[nodiscard]] fault receive_ask(peer& from, const section& s);
  [[nodiscard]] fault receive_names(peer& from, const frame_reader::item& item);
  bool finish_arrivals();
  [[nodiscard]] bool may_begin(const arrival& a) const;
  [[nodiscard]] bool begin_arrival(arrival& a);
  [[nodiscard]] bool ask_for_pieces(arrival& a);
  [[nodiscard]] std::optional<result<world::memory_block>> memory_for(const arrival& a);
  void forget_arrivals_of(std::uint32_t node);
  void keep_memory_of(const arrival& a);
  [[nodiscard]] engine::outcome look_at(arrival& a);
  void wait_for_memory(const arrival& a, std::string_view why);
  void show(mirror_ring& m);
  void wake_later(std::uint32_t pe, bool always);
  bool send(peer& to, bool everything);
  bool send_pieces(peer& to);
  [[nodiscard]] frame new_frame();
  bool transmit(peer& to, frame f);
  void fill(peer& to, frame& f, bool everything);
  bool finish_sends(peer& to, bool looks);
  void queue(peer& to, section head, std::span<const std::byte> payload = {});
  void queue_news(peer& to, node_news news, std::uint32_t about, std::string_view how = {}, bool flag = false);
  void queue_counters(peer& to, std::uint64_t round);
  void queue_names(peer& to);
  void activate(peer& p);
  [[nodiscard]] static bool is_at_rest(const peer& p) noexcept;
  void give_signs(std::int64_t now);
  void give_sign(peer& to);
  void ask_if_wanted();
  void forget_question(std::uint32_t node);
  void evict(std::uint32_t node, std::string_view how);
  void tell_evictions(peer& to);
  void suspect(std::uint32_t node, std::string_view how, bool silent = false);
  void refuse(peer& from, const fault& why);
  void watch(peer& p);
  void look_for_silent(std::int64_t now);
  [[nodiscard]] bool may_be_silent(const peer& p) const;
  [[nodiscard]] mirror_ring* find_mirror(peer& from, std::uint32_t from_pe, std::uint32_t to_pe) noexcept;
  [[nodiscard]] bool has_sent_all() const;
  [[nodiscard]] bool has_blocks_in_library() const;
  void look_for_moving_blocks(bool any);
  void look_for_idle_rings(std::int64_t now);
  [[nodiscard]] doorbell& bell_of(std::uint32_t pe) noexcept;
  std::uint64_t send_block(std::uint64_t offset, std::uint64_t bytes) override;
  std::uint64_t release_block(std::uint64_t offset) override;

  engine& engine_;
  shm_world& local_;
  const cluster_map& map_;
  cluster_members& members_;
  std::int64_t patience_ns_;
  std::function<void(const std::string&)> fatal_;
  clock time_;
  memory_source memory_;
  ring_sizes ring_sizes_;
  // by PE of this node: it has some that it may reclaim
  wire::unique_ptr<std::atomic<bool>[]> idle_rings_;
  wire::unique_ptr<counter_copy[]> copies_;  // by PE; those of this machine are not used

  std::mutex mutex_;  // of what follows
  std::vector<peer> peers_;  // by node
  std::vector<std::uint32_t> active_;  // nodes, in no order (I5)
  peer* sending_to_ = nullptr;
  struct posted_receive {
    engine::request request;
    frame memory;
  };
  std::vector<posted_receive> pool_;
  std::size_t oldest_ = 0;  // of the pool
  late_wakes wakes_;
  bool just_came_ = false;  // a frame, when the carrier was driven last
  std::int64_t looked_ns_ = 0;  // by a busy PE
  std::int64_t moved_ns_ = 0;  // a part of a block, or a frame
  std::list<arrival> arrivals_;
  std::uint64_t arrivals_so_far_ = 0;
  slow_memory slow_memory_;
  std::vector<eviction> evictions_;
  std::unordered_map<std::uint64_t, guest_block> guests_;  // by offset
  bool keeps_memory_ = false;  // of blocks that came in part: the library may write there
  std::vector<frame> spare_;
  std::set<std::uint32_t> asked_;  // nodes that have not answered in this round
  std::uint64_t round_ = 0;
  part_sink parts_;
  names_source names_;
  std::function<bool()> is_debugged_;
  bool debugged_ = false;  // as it has said
  std::int64_t debugger_looked_for_ns_;
  bool has_left_ = false;  // it has said so
  bool misses_silent_ = true;
  std::int64_t last_tick_ns_ = 0;
  std::int64_t rings_looked_at_ns_ = 0;

  std::atomic<std::uint64_t> begun_{0};  // the round that is asked for
  std::atomic<std::uint64_t> wanted_{0};
  std::atomic<bool> wants_names_{false};
  std::atomic<std::uint64_t> answered_{0};
  std::atomic<std::uint64_t> evictions_known_{0};
  std::atomic<std::uint64_t> far_frames_{0};
  std::atomic<std::uint64_t> drives_{0};  // written under the lock
  std::atomic<bool> moves_blocks_{false};  // written under the lock
  std::atomic<socket_watch*> helper_{nullptr};  // that sleeps
  std::atomic<socket_watch*> napping_{nullptr};
  mutable std::mutex table_mutex_;
  std::unordered_map<std::uint64_t, std::uint64_t> mirror_table_;  // to << 32 | from -> offset
};

}  // namespace orrery::transport
