// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/transport/error.hpp>
#include <orrery/transport/shm/numbers.hpp>
#include <orrery/transport/shm/registry.hpp>
#include <orrery/transport/shm/segment.hpp>
#include <orrery/transport/shm/world.hpp>
#include <orrery/transport/wait.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace orrery::transport {

// How shared memory is laid out. Change `version` with every change here.
namespace layout {

inline constexpr std::uint64_t world_magic = 0x444c'524f'5752'524f;  // "ORRWORLD"
inline constexpr std::uint64_t node_magic = 0x4544'4f4e'5252'524f;   // "ORRRNODE"
inline constexpr std::uint32_t version = 7;
inline constexpr std::uint64_t page = 4096;

/// The first page of the world segment. Written once by the first node, but for what is atomic.
struct world_header {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t uid;
  std::uint64_t bytes;
  std::uint64_t nonce;
  std::uint64_t build_id;
  std::uint64_t creator_start;
  std::int32_t creator_pid;
  std::uint32_t places;  ///< of nodes, and of PEs, that are given out at most
  char name[64];
  char program[32];
  std::uint32_t closed;  ///< nobody joins it by its name
  alignas(64) std::atomic<std::uint32_t> state;
  std::atomic<std::uint32_t> epoch;    ///< a futex word
  std::atomic<std::uint64_t> numbers;  ///< places given out so far: nodes << 32 | PEs
  std::atomic<std::uint64_t> aliases;  ///< given out so far
};
static_assert(sizeof(world_header) <= page);

struct alignas(128) node_entry {
  std::atomic<std::uint32_t> state;  ///< epoch << state_bits | node_state
  std::atomic<std::int32_t> pid;
  std::atomic<std::uint64_t> start_time;
  std::atomic<std::uint32_t> first_pe;
  std::atomic<std::uint32_t> pe_count;
  std::atomic<std::uint32_t> launcher;
  std::atomic<std::int32_t> segment_fd;
  std::atomic<std::uint64_t> segment_bytes;
  std::atomic<std::int32_t> kick_fd;  ///< + 1; 0: none yet
  std::atomic<std::uint64_t> kick_inode;
  std::atomic<std::int32_t> board_fd;  ///< + 1; 0: none
  std::atomic<std::uint32_t> vocabulary;  ///< + 1; 0: none. Written before the state is `reserved`
  char program[32];                   ///< written before the state is `reserved`, then constant
  /// Nodes that were there at this place and have ended, before this one, << 1 | this one was
  /// there. One word, so that their sum never falls.
  std::atomic<std::uint32_t> lives;
  /// Once the node has ended: the least count of nodes gone that includes it, + 1. Written by who
  /// gives out places.
  std::atomic<std::uint64_t> gone_at;
  /// Nodes gone, as far as the node's monitor has told of them.
  std::atomic<std::uint64_t> noticed;
};
static_assert(sizeof(node_entry) == 128);

inline constexpr std::uint32_t state_bits = 4;
/// A node_state that is in the tables only: whoever took the place has not written the entry yet.
inline constexpr std::uint32_t claimed = 7;
[[nodiscard]] constexpr std::uint32_t state_word(std::uint32_t node, std::uint32_t state) noexcept {
  return epoch_of(node) << state_bits | state;
}

/// The PE that has a place.
struct pe_entry {
  /// Its number << 32 | number of its node + 1; 0: nobody had the place yet.
  std::atomic<std::uint64_t> holder;
  /// Nodes gone, as far as the PE will not touch what was theirs.
  std::atomic<std::uint64_t> noticed;
};

/// The first page of a node segment.
struct node_header {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t node;
  std::uint64_t nonce;  ///< of the world
  std::uint64_t bytes;
};

using counter = std::atomic<std::uint64_t>;
using ring_entry = std::atomic<std::uint64_t>;  ///< offset + 1; 0: none

inline constexpr std::uint64_t nodes_at = page;
inline constexpr std::uint64_t pe_nodes_at = nodes_at + sizeof(node_entry) * max_nodes;
inline constexpr std::uint64_t bells_at = pe_nodes_at + sizeof(pe_entry) * max_pes;
inline constexpr std::uint64_t counters_at = bells_at + sizeof(doorbell) * max_pes;
inline constexpr std::uint64_t rings_at = counters_at + sizeof(counter) * counters_per_pe * max_pes;
inline constexpr std::uint64_t row_bytes = sizeof(ring_entry) * max_pes;
inline constexpr std::uint64_t registry_at = rings_at + row_bytes * max_pes;
/// Short numbers of PEs: those of the first epoch, and for others one that is looked up here.
inline constexpr std::uint32_t aliases = 1U << 18;
inline constexpr std::uint64_t aliases_at = registry_at + world_registry::bytes;
inline constexpr std::uint64_t world_bytes = aliases_at + sizeof(std::uint32_t) * aliases;

static_assert(pe_nodes_at % page == 0 && bells_at % page == 0 && counters_at % page == 0);
static_assert(rings_at % page == 0 && registry_at % page == 0 && aliases_at % page == 0 && world_bytes % page == 0);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace layout

/// Places given out so far: a bound for loops over all.
struct handed_out {
  std::uint32_t nodes = 0;
  std::uint32_t pes = 0;
};

// The tables of the world segment, every number checked. Does not own the memory; copied at will.
// Thread-safe; what it returns by value is true of some recent moment.
class world_table {
 public:
  explicit world_table(std::byte* base) noexcept : base_(base) {}

  [[nodiscard]] layout::world_header& head() const noexcept { return *reinterpret_cast<layout::world_header*>(base_); }
  /// The entry of the place of that node.
  [[nodiscard]] layout::node_entry& entry(std::uint32_t n) const noexcept {
    return reinterpret_cast<layout::node_entry*>(base_ + layout::nodes_at)[place_of(n)];
  }
  [[nodiscard]] doorbell* bells() const noexcept { return reinterpret_cast<doorbell*>(base_ + layout::bells_at); }
  [[nodiscard]] layout::counter* counters() const noexcept {
    return reinterpret_cast<layout::counter*>(base_ + layout::counters_at);
  }
  [[nodiscard]] layout::ring_entry& ring(std::uint32_t to, std::uint32_t from) const noexcept {
    return reinterpret_cast<layout::ring_entry*>(base_ + layout::rings_at +
                                                 layout::row_bytes * place_of(to))[place_of(from)];
  }
  /// The entry of the place of that PE.
  [[nodiscard]] layout::pe_entry& pe(std::uint32_t pe) const noexcept {
    return reinterpret_cast<layout::pe_entry*>(base_ + layout::pe_nodes_at)[place_of(pe)];
  }

  /// The PE that has taken an alias; `alias` < layout::aliases.
  [[nodiscard]] std::atomic<std::uint32_t>& alias(std::uint32_t alias) const noexcept {
    return reinterpret_cast<std::atomic<std::uint32_t>*>(base_ + layout::aliases_at)[alias];
  }

  /// Makes the header. The memory is zero.
  void create(std::string_view name, const world_config& config, peer_id creator, std::uint64_t nonce) const noexcept;
  /// Whether this is a world that this build of Orrery can read. `what` names it.
  [[nodiscard]] result<void> check(std::uint64_t bytes, std::string_view what) const;

  [[nodiscard]] std::string name() const;
  [[nodiscard]] std::string program() const;
  [[nodiscard]] world_state state() const noexcept;
  [[nodiscard]] handed_out numbers() const noexcept;
  /// Places of nodes, and of PEs, that are given out at most.
  [[nodiscard]] std::uint32_t places() const noexcept;
  /// The last node at a place, or PE; 0xffffffff if there was none.
  [[nodiscard]] std::uint32_t node_at(std::uint32_t place) const noexcept;
  [[nodiscard]] std::uint32_t pe_at(std::uint32_t place) const noexcept;
  /// `left` for a node whose place another one has now: it has ended.
  [[nodiscard]] node_state state_of(std::uint32_t n) const noexcept;
  /// Only `node` and `state` are known of a node whose place another one has now.
  [[nodiscard]] node_info info(std::uint32_t n) const;
  /// no_node if the PE's place is not, or no more, that PE's.
  [[nodiscard]] std::uint32_t pe_node(std::uint32_t pe) const noexcept;
  /// Nodes that were there and have ended. Never falls, and is never the same again after one has
  /// ended.
  [[nodiscard]] std::uint64_t gone_nodes() const noexcept;
  /// The node that started it; itself if nobody did; no_node if it never was there, or another one
  /// has its place.
  [[nodiscard]] std::uint32_t launcher_of(std::uint32_t n) const noexcept;
  /// The PE with that short number; 0xffffffff if there is none.
  [[nodiscard]] std::uint32_t pe_of_alias(std::uint32_t alias) const noexcept;
  /// The place of the node's vocabulary in the registry, unchecked; no_vocabulary if it has shown
  /// none.
  [[nodiscard]] std::uint32_t vocabulary_of(std::uint32_t n) const noexcept;

  /// False if the node was not in that state.
  bool change_state(std::uint32_t n, node_state from, node_state to) const noexcept;
  /// False if it had ended already. Nodes that it was to launch are dead, too.
  bool mark_dead(std::uint32_t n) const noexcept;

 private:
  std::byte* base_;
};

}  // namespace orrery::transport
