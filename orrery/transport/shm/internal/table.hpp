// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/transport/error.hpp>
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
inline constexpr std::uint32_t version = 4;
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
  std::uint32_t pad;
  char name[64];
  char program[32];
  alignas(64) std::atomic<std::uint32_t> state;
  std::atomic<std::uint32_t> epoch;    ///< a futex word
  std::atomic<std::uint64_t> numbers;  ///< given out: nodes << 32 | PEs
};
static_assert(sizeof(world_header) <= page);

struct alignas(128) node_entry {
  std::atomic<std::uint32_t> state;
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
  char program[32];                   ///< written before the state is `reserved`, then constant
};
static_assert(sizeof(node_entry) == 128);

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
inline constexpr std::uint64_t bells_at = pe_nodes_at + sizeof(std::uint32_t) * max_pes;
inline constexpr std::uint64_t counters_at = bells_at + sizeof(doorbell) * max_pes;
inline constexpr std::uint64_t rings_at = counters_at + sizeof(counter) * counters_per_pe * max_pes;
inline constexpr std::uint64_t row_bytes = sizeof(ring_entry) * max_pes;
inline constexpr std::uint64_t world_bytes = rings_at + row_bytes * max_pes;

static_assert(pe_nodes_at % page == 0 && bells_at % page == 0 && counters_at % page == 0);
static_assert(rings_at % page == 0 && world_bytes % page == 0);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace layout

/// Numbers given out so far.
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
  /// `n` < max_nodes, checked by the caller.
  [[nodiscard]] layout::node_entry& entry(std::uint32_t n) const noexcept {
    return reinterpret_cast<layout::node_entry*>(base_ + layout::nodes_at)[n];
  }
  [[nodiscard]] doorbell* bells() const noexcept { return reinterpret_cast<doorbell*>(base_ + layout::bells_at); }
  [[nodiscard]] layout::counter* counters() const noexcept {
    return reinterpret_cast<layout::counter*>(base_ + layout::counters_at);
  }
  [[nodiscard]] layout::ring_entry& ring(std::uint32_t to, std::uint32_t from) const noexcept {
    return reinterpret_cast<layout::ring_entry*>(base_ + layout::rings_at + layout::row_bytes * to)[from];
  }
  [[nodiscard]] std::atomic<std::uint32_t>& pe_node_word(std::uint32_t pe) const noexcept {
    return reinterpret_cast<std::atomic<std::uint32_t>*>(base_ + layout::pe_nodes_at)[pe];
  }

  /// Makes the header. The memory is zero.
  void create(std::string_view name, const world_config& config, peer_id creator, std::uint64_t nonce) const noexcept;
  /// Whether this is a world that this build of Orrery can read. `what` names it.
  [[nodiscard]] result<void> check(std::uint64_t bytes, std::string_view what) const;

  /// Gives out `count` node numbers with `config.pe_count` PEs each; the first is for `self`, whose
  /// entry becomes `joining`, the others are `reserved` for it.
  [[nodiscard]] result<handed_out> reserve(const segment& memory, const world_config& config, peer_id self) const;

  [[nodiscard]] std::string name() const;
  [[nodiscard]] std::string program() const;
  [[nodiscard]] world_state state() const noexcept;
  [[nodiscard]] handed_out numbers() const noexcept;
  [[nodiscard]] node_state state_of(std::uint32_t n) const noexcept;
  [[nodiscard]] node_info info(std::uint32_t n) const;
  [[nodiscard]] std::uint32_t pe_node(std::uint32_t pe) const noexcept;

 private:
  [[nodiscard]] result<void> back(const segment& memory, handed_out before, handed_out after) const;

  std::byte* base_;
};

}  // namespace orrery::transport
