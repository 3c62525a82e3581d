// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/transport/error.hpp>
#include <orrery/transport/wait.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace orrery::transport {

class carrier;
class shm_world;

inline constexpr std::uint32_t counters_per_pe = 32;
inline constexpr std::uint32_t no_node = 0xffff'ffff;
inline constexpr std::uint32_t no_pe = 0xffff'ffff;

enum class world_state : std::uint32_t {
  running = 1,
  ending = 2,  ///< the first node has left, or somebody has ended the world
  lost = 3,    ///< the first node ended without that
};

/// The known state of a node. Only these changes happen: empty -> reserved -> joining -> alive ->
/// leaving -> left, and from any but empty and left to dead.
enum class node_state : std::uint32_t {
  empty = 0,  ///< the number has not been given out
  reserved = 1,  ///< given out to an OS process that is yet to be started
  joining = 2,  ///< its pid is known
  alive = 3,  ///< it can be sent to
  leaving = 4,  ///< it takes no new work, but its PEs still read what was sent to them, and answer
  left = 5,     ///< its PEs have ended: nothing there reads the memory of other nodes any more
  dead = 6,  ///< it ended without leaving
};
[[nodiscard]] std::string_view to_string(node_state state) noexcept;
[[nodiscard]] std::string_view to_string(world_state state) noexcept;

/// Told of nodes that come and go, between methods or on a thread of the transport's own: be short,
/// post the news to a PE. Each thing is told at most once of each node, and nothing of this node
/// itself.
class membership_observer {
 public:
  virtual ~membership_observer() = default;
  virtual void node_joined(std::uint32_t node) noexcept = 0;
  /// The node takes no new work from now on. Not told of a node that left between two looks.
  virtual void node_leaving(std::uint32_t /*node*/) noexcept {}
  /// If a node came and went between two looks, node_joined is not told before.
  virtual void node_left(std::uint32_t node) noexcept = 0;
  /// As node_left, but it ended without leaving. `how` is a clause for people: "was killed by
  /// signal 9 (Killed)".
  virtual void node_lost(std::uint32_t node, std::string_view how) noexcept = 0;
  /// The world was ended somewhere.
  virtual void world_ending() noexcept = 0;
  /// The first node is lost, and `how`. It follows node_lost(0, how); nothing follows it.
  virtual void world_lost(std::string_view how) noexcept = 0;
};

/// While it lives, an observer is told. Its end waits for a call that is under way.
class membership_watch {
 public:
  virtual ~membership_watch() = default;
};

/// The name of this host.
[[nodiscard]] std::string own_host();

/// A world of several nodes, as one of them sees it: who is there, how to wake them, and memory for
/// what is sent to them. There is one for each way in which nodes can share a world: nodes of one
/// machine (`shm_world`), and simulated ones (`sim_world`).
///
/// Owned by who opened it; outlives the node. All calls may come from any PE of the node, except
/// that unmap(node) needs that nobody uses that node's memory.
///
/// Invariant of memory that another node may read (rings to it, payload blocks for it): its owner
/// uses it again only when the reader has said so, or reads no more, which is the state `left` or
/// `dead`. A node that is `leaving` still reads; so does one that is only not trusted. A node
/// becomes `left` when its last PE has ended, and `dead` when its OS process has; so no message is
/// ever run by a node that it was not sent to, and what such a node had not read is known exactly.
/// `has_ended` is that test.
class world {
 public:
  /// Memory of this node for a ring or a payload, that the receiver reads where it lies.
  struct memory_block {
    std::byte* data;
    std::uint64_t offset;  ///< names it in messages
    bool zeroed;           ///< else it holds what it held
  };

  world(const world&) = delete;
  world& operator=(const world&) = delete;
  virtual ~world() = default;

  // This node.
  [[nodiscard]] std::uint32_t node() const noexcept { return node_; }
  [[nodiscard]] std::uint32_t first_pe() const noexcept { return first_pe_; }
  [[nodiscard]] std::uint32_t pe_count() const noexcept { return pe_count_; }
  /// The node that made the world; its end is the end of the world.
  [[nodiscard]] bool is_first() const noexcept { return node_ == 0; }

  // Everybody. A number names one node or PE for ever. Loops over all go over places, which are
  // used again: numbers of nodes and PEs that have ended may lie at none.
  /// Places of nodes given out so far.
  [[nodiscard]] virtual std::uint32_t node_limit() const noexcept = 0;
  /// Places of PEs given out so far.
  [[nodiscard]] virtual std::uint32_t pe_limit() const noexcept = 0;
  /// The number of the last node at a place below node_limit(); no_node if there was none.
  [[nodiscard]] virtual std::uint32_t node_at(std::uint32_t place) const noexcept { return place; }
  /// The same of PEs.
  [[nodiscard]] virtual std::uint32_t pe_at(std::uint32_t place) const noexcept { return place; }
  /// The number was given out, now or earlier.
  [[nodiscard]] virtual bool knows_node(std::uint32_t node) const noexcept { return node < node_limit(); }
  [[nodiscard]] virtual bool knows_pe(std::uint32_t pe) const noexcept { return pe < pe_limit(); }
  /// The PE's place was given to another one: it has ended.
  [[nodiscard]] virtual bool is_past_pe(std::uint32_t /*pe*/) const noexcept { return false; }
  /// Places of nodes that there can ever be.
  [[nodiscard]] virtual std::uint32_t node_capacity() const noexcept = 0;
  [[nodiscard]] virtual node_state state(std::uint32_t node) const noexcept = 0;
  [[nodiscard]] bool alive(std::uint32_t node) const noexcept { return state(node) == node_state::alive; }
  /// It reads and answers what is sent to it.
  [[nodiscard]] bool answers(std::uint32_t node) const noexcept {
    const node_state s = state(node);
    return s == node_state::alive || s == node_state::leaving;
  }
  /// It was there, and reads nobody's memory any more.
  [[nodiscard]] bool has_ended(std::uint32_t node) const noexcept {
    const node_state s = state(node);
    return s == node_state::left || s == node_state::dead;
  }
  /// First and count of the PEs of a node that is known; none if its place was given to another
  /// one.
  [[nodiscard]] virtual std::pair<std::uint32_t, std::uint32_t> pes_of(std::uint32_t node) const = 0;
  /// no_node if the PE's number has not been given out, or its place was given to another one.
  [[nodiscard]] virtual std::uint32_t pe_node(std::uint32_t pe) const noexcept = 0;
  /// Nodes that were there and have left or are dead. Never falls.
  [[nodiscard]] virtual std::uint64_t gone_nodes() const noexcept = 0;
  /// The first node of the program that a node runs: of those that one node has started, that one;
  /// of ranks, the first whose program has the same name and classes. no_node if the node's place
  /// was given to another one.
  [[nodiscard]] virtual std::uint32_t launch_of(std::uint32_t /*node*/) const noexcept { return 0; }
  /// A PE of this node has let go of all that the nodes had that were counted by `gone`: their
  /// rings, and what it would have published for them. When all PEs have, the places of those nodes
  /// are free for others.
  virtual void acknowledge(std::uint32_t /*pe*/, std::uint64_t /*gone*/) noexcept {}
  /// A short number of a PE of this node, below 262,144 unless the PE's own is larger and of the
  /// first to have its place. Such a number is used again when 258,000 others were taken.
  [[nodiscard]] virtual std::uint32_t take_alias(std::uint32_t pe) noexcept { return pe; }
  /// The PE that took it last; no_pe if nobody has.
  [[nodiscard]] virtual std::uint32_t pe_of_alias(std::uint32_t alias) const noexcept { return alias; }
  [[nodiscard]] virtual std::uint32_t machines() const noexcept = 0;
  [[nodiscard]] virtual std::uint32_t machine_of(std::uint32_t node) const noexcept = 0;
  /// The host name of a machine below machines().
  [[nodiscard]] virtual std::string host_of(std::uint32_t /*machine*/) const { return own_host(); }
  /// How long a node may be silent before it is taken for lost; 0: its end is seen at once.
  [[nodiscard]] virtual std::chrono::nanoseconds patience() const noexcept { return {}; }
  [[nodiscard]] virtual world_state state() const noexcept = 0;
  /// Changes whenever a node joins, leaves or dies and when the world ends. Cheap.
  [[nodiscard]] virtual std::uint32_t epoch() const noexcept = 0;
  /// Others come and go as they like: the world has a name.
  [[nodiscard]] virtual bool is_open() const noexcept = 0;
  /// Nodes may run other programs than this one: launch_of says which belong together.
  [[nodiscard]] virtual bool has_other_programs() const noexcept { return is_open(); }
  [[nodiscard]] virtual result<wire::unique_ptr<membership_watch>> watch(membership_observer& observer) = 0;

  // Memory.
  /// Fails with `no_space` if that much is not free now.
  [[nodiscard]] virtual result<memory_block> allocate(std::uint64_t bytes) = 0;
  /// The same, but not within the node's limit.
  [[nodiscard]] virtual result<memory_block> allocate_beyond(std::uint64_t bytes) { return allocate(bytes); }
  /// For a ring: not within the node's limit, as number and size of rings are bounded.
  [[nodiscard]] virtual result<memory_block> allocate_ring(std::uint64_t bytes) { return allocate(bytes); }
  /// Nothing happens if no block begins there: offsets may come from other nodes.
  virtual void release(std::uint64_t offset) noexcept = 0;
  /// A range of what a node sends from, checked; fails with `gone` if the node had ended before
  /// this one saw it.
  [[nodiscard]] virtual result<std::span<std::byte>> map(std::uint32_t node, std::uint64_t offset,
                                                         std::uint64_t bytes) = 0;
  /// Lets go of the memory of a node that is gone.
  virtual void unmap(std::uint32_t node) = 0;

  // PEs. `pe` is known. A bell may be that of a later PE at the same place, which it wakes in vain.
  [[nodiscard]] virtual doorbell& bell(std::uint32_t pe) noexcept = 0;
  /// Written by the PE only, read by others. Their meaning is the scheduler's business.
  [[nodiscard]] virtual std::span<std::atomic<std::uint64_t>, counters_per_pe> counters(
      std::uint32_t pe) const noexcept = 0;
  /// Tells PE `to` that a ring from PE `from` (of this node) lies at `offset` of this node's
  /// memory, and wakes it.
  virtual void publish_ring(std::uint32_t to, std::uint32_t from, std::uint64_t offset) noexcept = 0;
  /// Where the ring lies in the memory of the node of `from`; nothing if there is none. Check it
  /// with map().
  [[nodiscard]] virtual std::optional<std::uint64_t> ring_offset(std::uint32_t to,
                                                                 std::uint32_t from) const noexcept = 0;

  /// This node takes no new work; its PEs go on until they have wound down. On the first node: the
  /// end of the world.
  virtual void begin_leave() noexcept = 0;
  /// This node's PEs have ended: it neither reads nor writes memory of others any more. Includes
  /// begin_leave().
  virtual void leave() noexcept = 0;

  /// Nodes and PEs that share the cores and the memory of this machine with this node, which is one
  /// of them.
  [[nodiscard]] virtual std::pair<std::uint32_t, std::uint32_t> crowd() const noexcept {
    return {node_limit(), pe_limit()};
  }
  /// Takes what PEs send to other machines, and brings what comes from there; null in a world of
  /// one machine.
  [[nodiscard]] virtual transport::carrier* carrier() noexcept { return nullptr; }
  /// This world, if its nodes are OS processes of one machine; else null.
  [[nodiscard]] virtual shm_world* shared() noexcept { return nullptr; }
  /// The name of the program that a node runs, for people; empty: it is not known.
  [[nodiscard]] virtual std::string program_of([[maybe_unused]] std::uint32_t node) const { return {}; }

 protected:
  world() = default;
  std::uint32_t node_ = no_node;
  std::uint32_t first_pe_ = 0;
  std::uint32_t pe_count_ = 0;
};

}  // namespace orrery::transport
