// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/transport/error.hpp>
#include <orrery/transport/shm/peer.hpp>
#include <orrery/transport/shm/segment.hpp>
#include <orrery/transport/shm/world.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::transport {

// Looks at a named world without being a member: for `orrery ls` and `orrery top`. The mapping is
// read-only, so a tool can do no harm. It shows what is in the tables, and goes on to do so when
// the world has ended.
//
// Ownership: RAII, moved but not copied. Thread-safe but for moving.
class world_view {
 public:
  /// Fails with `not_found` if no world of that name and of this user is there, `gone` if its first
  /// node has ended.
  [[nodiscard]] static result<world_view> attach(std::string_view name, std::string_view directory = {});
  world_view(world_view&&) noexcept;
  world_view& operator=(world_view&&) noexcept;
  ~world_view();

  [[nodiscard]] std::string name() const;
  [[nodiscard]] std::string program() const;
  [[nodiscard]] std::uint64_t build_id() const noexcept;
  [[nodiscard]] std::uint64_t nonce() const noexcept;
  /// The nodes of one machine of a world of several; cluster_status shows all of it.
  [[nodiscard]] bool is_part() const noexcept;
  [[nodiscard]] peer_id creator() const noexcept { return creator_.id(); }
  [[nodiscard]] bool creator_running() const noexcept { return creator_.running(); }
  [[nodiscard]] world_state state() const noexcept;
  [[nodiscard]] std::uint32_t epoch() const noexcept;
  [[nodiscard]] std::uint32_t node_limit() const noexcept;
  [[nodiscard]] std::uint32_t pe_limit() const noexcept;
  /// The last node at a place below node_limit(); no_node if there was none.
  [[nodiscard]] std::uint32_t node_at(std::uint32_t place) const noexcept;
  [[nodiscard]] node_info info(std::uint32_t node) const;
  [[nodiscard]] std::uint32_t pe_node(std::uint32_t pe) const noexcept;
  /// The content of a node's board; empty if it has none or is not there (any more). Fails as
  /// board::read.
  [[nodiscard]] result<std::vector<std::byte>> read_board(std::uint32_t node) const;
  /// For the last PE at the place of `pe`; `index` is below counters_per_pe.
  [[nodiscard]] bool sleeping(std::uint32_t pe) const noexcept;
  [[nodiscard]] std::uint64_t counter(std::uint32_t pe, std::uint32_t index) const noexcept;

 private:
  world_view(peer creator, segment world);
  peer creator_;
  segment world_;
  wire::unique_ptr<world_table> table_;
};

/// One line of `orrery ls`.
struct world_info {
  enum class condition : std::uint8_t {
    running,
    ending,
    stale,  ///< the first node is gone; the file can be removed
    unreadable,  ///< `problem` says why
  };
  std::string name;
  std::string path;
  condition state = condition::stale;
  std::string problem;
  peer_id creator;
  std::string program;
  /// For a world of several machines: the nodes and PEs are those of this one.
  bool is_part = false;
  std::uint32_t nodes = 0;  ///< alive
  std::uint32_t pes = 0;  ///< of nodes that are alive
};

/// The named worlds of this user, by name.
[[nodiscard]] result<std::vector<world_info>> list_worlds(std::string_view directory = {});
/// Removes the files of worlds whose first node is gone. Returns how many.
[[nodiscard]] result<std::size_t> remove_stale_worlds(std::string_view directory = {});

}  // namespace orrery::transport
